use super::*;

fn read(text: &str) -> Result<Trace> {
    Trace::read(text.as_bytes(), &Interrupt::never())
}

/// Two calls in each thread. Line 0x1000 is written by both, 0x2000 is written by the first and
/// read by the second, 0x3000 and 0x4000 are private, 0x5000 is only read; what lies outside the
/// phases doesn't count.
const TWO_THREADS: &str = "==1== Lackey, an example Valgrind tool\n\
    I  00400000,4\n S 00003000,8\n\
    @ begin\n\
    I  00400000,4\n M 00001000,8\nI  00400004,3\n S 00002008,4\n S 00003000,8\n L 00005000,8\n\
    I  00400000,4\n M 00001000,8\nI  00400004,3\n S 00002008,4\n S 00003000,8\n L 00005000,8\n\
    @ end\n\
    I  00400000,4\n S 00004000,8\n S 00003000,8\n\
    @ begin\n\
    I  00400000,4\n M 00001038,8\nI  00400010,3\n L 00002030,8\n S 00004000,8\n L 00005000,8\n\
    I  00400000,4\n M 00001038,8\nI  00400010,3\n L 00002030,8\n S 00004000,8\n L 00005000,8\n\
    @ end\n==1== \n";

#[test]
fn lines_that_one_writes_and_the_other_uses_are_shared() {
    let (lines, sites) = read(TWO_THREADS).unwrap().shared_lines(2);
    assert_eq!(lines, 2);
    assert_eq!(sites, Sites::from([(0x40_0000, 4), (0x40_0004, 2)]));
}

#[test]
fn what_is_rare_does_not_count() {
    assert_eq!(
        read(TWO_THREADS).unwrap().shared_lines(3),
        (0, Sites::new())
    );
}

#[test]
fn an_access_across_the_border_touches_two_lines() {
    let text = "@ begin\nI  1,1\n S 0000003c,8\n@ end\n@ begin\nI  2,1\n L 00000040,1\n@ end\n";
    let (lines, sites) = read(text).unwrap().shared_lines(1);
    assert_eq!((lines, sites), (1, Sites::from([(1, 1)])));
}

#[test]
fn a_trace_that_is_cut_off_is_an_error_with_what_the_program_said() {
    let (cut, _) = TWO_THREADS.rsplit_once("@ end").unwrap();
    let error = read(&format!("{cut}edgewright-bench: no such hook\n")).unwrap_err();
    assert!(error.to_string().contains("no such hook"), "{error}");
    assert!(read("").is_err());
    assert!(read("@ begin\nI  zz,1\n").is_err());
    assert!(read("@ begin\n@ begin\n").is_err());
}

#[test]
fn modules_are_those_that_hold_code() {
    let text = "@ map 00400000-00410000 r--p 00000000 fe:00 77   /usr/bin/a\n\
                @ map 00410000-00420000 r-xp 0000f000 fe:00 77   /usr/bin/a\n\
                @ map 00420000-00421000 rw-p 0001f000 fe:00 77   /usr/bin/a\n\
                @ map 1000000-1001000 rwxp 00000000 00:00 0 \n\
                @ map 1001000-1002000 r-xp 00000000 00:00 0   [vdso]\n";
    let trace = read(&format!("{text}{TWO_THREADS}")).unwrap();
    let [module] = &trace.modules[..] else {
        panic!("{:?}", trace.modules);
    };
    assert_eq!(module.path, PathBuf::from("/usr/bin/a"));
    assert_eq!((module.base, module.offset), (0x40_0000, 0xf000));
    assert!(module.holds(0x41_ffff) && !module.holds(0x42_0000));
}

#[test]
fn atomics_are_told_from_what_looks_alike() {
    for (bytes, name) in [
        (&[0xf0, 0x48, 0x0f, 0xc1, 0x08][..], "lock xadd [rax], rcx"),
        (&[0xf0, 0xff, 0x0f], "lock dec dword [rdi]"),
        (&[0x66, 0xf0, 0x0f, 0xb1, 0x0f], "lock cmpxchg [rdi], cx"),
        (&[0x48, 0x87, 0x07], "xchg [rdi], rax"),
        (&[0x86, 0x47, 0x10], "xchg [rdi+16], al"),
    ] {
        assert!(is_atomic(bytes), "{name}");
    }
    for (bytes, name) in [
        (&[0x48, 0x87, 0xc3][..], "xchg rbx, rax"),
        (&[0x48, 0x0f, 0xc1, 0x08], "xadd [rax], rcx"),
        (&[0x48, 0x8b, 0xf0], "mov rsi, rax"),
        (&[0x90], "nop"),
        (
            &[0xc7, 0x07, 0xf0, 0x86, 0x00, 0x00],
            "mov dword [rdi], 0x86f0",
        ),
        (&[], "nothing"),
    ] {
        assert!(!is_atomic(bytes), "{name}");
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn the_code_is_read_where_the_map_says() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("program");
    // At offset 0x10 of the file `lock inc [rdi]`, behind it `inc [rdi]`.
    let mut bytes = vec![0; 0x10];
    bytes.extend([0xf0, 0x48, 0xff, 0x07, 0x48, 0xff, 0x07]);
    std::fs::write(&file, bytes).unwrap();
    let path = file.display();
    let text = format!(
        "@ map 003ff000-00400000 r--p 00000000 00:00 7 {path}\n\
         @ map 00400000-00401000 r-xp 00000010 00:00 7 {path}\n\
         @ begin\nI  00400000,4\n M 00001000,8\nI  00400004,3\n M 00001000,8\n@ end\n\
         @ begin\nI  00400000,4\n M 00001000,8\n@ end\n"
    );
    let found = read(&text).unwrap().atomics().unwrap();
    assert_eq!(found, Some(Sites::from([(0x40_0000, 2)])));
}
