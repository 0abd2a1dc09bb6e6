-- For wrk. With an argument, each connection waits between an answer and the next request: so many milliseconds on
-- average, by chance. Many such connections together ask about as often as independent clients do.
function init(args)
  local mean = tonumber(args[1]) or 0
  if mean > 0 then
    math.randomseed(os.time())
    delay = function() return math.floor(-mean * math.log(1 - math.random()) + 0.5) end
  end
end

-- One line for scripts/bench-pod.sh: requests, microseconds, failed ones, p50, p99, p99.9 and the longest.
function done(summary, latency, requests)
  local e = summary.errors
  io.write(string.format("RESULT %d %d %d %d %d %d %d\n", summary.requests, summary.duration,
    e.connect + e.read + e.write + e.status + e.timeout,
    latency:percentile(50), latency:percentile(99), latency:percentile(99.9), latency.max))
end
