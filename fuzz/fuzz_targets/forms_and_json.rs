#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| edgewright_script::fuzzing::forms_and_json(input));
