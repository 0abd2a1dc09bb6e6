#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| edgewright::fuzzing::proxy_header(input));
