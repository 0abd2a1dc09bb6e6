-- What lua-resty-jwt is used for; Debian has none.
local cjson = require "cjson.safe"
local base64 = require "ngx.base64"
local digest = require "digest"

local _M = {}

function _M.verify(authorization, secret)
    local token = authorization and authorization:match("^Bearer (.+)$")
    if not token then return end
    local head, body, signature = token:match("^([^.]+)%.([^.]+)%.([^.]*)$")
    if not head then return end
    local header = cjson.decode(base64.decode_base64url(head) or "")
    -- The token does not choose its algorithm.
    if type(header) ~= "table" or header.alg ~= "HS256" then return end
    local given = base64.decode_base64url(signature)
    if not given or not digest.equal(digest.hmac_sha256(secret, head .. "." .. body), given) then
        return
    end
    local claims = cjson.decode(base64.decode_base64url(body) or "")
    if type(claims) ~= "table" then return end
    local now = ngx.now()
    if type(claims.exp) ~= "number" or claims.exp <= now then return end
    if claims.nbf and claims.nbf > now then return end
    if claims.iss ~= "https://id.test" then return end
    return claims
end

return _M
