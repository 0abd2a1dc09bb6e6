#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| edgewright_script::fuzzing::jwt(input));
