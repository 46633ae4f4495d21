// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 the memcached-qos authors
// scripts/clients/refused runs this: the calls of the crate memcache. usage:
// refused VERSION VARIANT TIMEOUT HOST PORT
use std::collections::BTreeMap;
use std::collections::HashMap;
use std::fmt::Debug;

fn said<T: Debug>(result: Result<T, memcache::MemcacheError>) -> String {
    match result {
        Ok(value) => format!("Ok({:?})", value),
        Err(e) => format!("Err: {}", e).trim().to_string(),
    }
}

fn main() -> Result<(), memcache::MemcacheError> {
    let args: Vec<String> = std::env::args().collect();
    let (version, variant, timeout) = (&args[1], &args[2], &args[3]);
    let url = format!("memcache://{}:{}?protocol={}&timeout={}", args[4], args[5], variant, timeout);
    let make = || memcache::Client::connect(url.as_str());
    let show = |call: &str, result: String| println!("memcache (crate) {}, {}\t{}\t{}", version, variant, call, result);
    show("get", said(make()?.get::<String>("g")));
    let many = make()?.gets::<String>(&["m1", "m2"]);
    show("get_multi", said(many.map(|found: HashMap<_, _>| found.into_iter().collect::<BTreeMap<_, _>>())));
    show("set", said(make()?.set("s", "2", 0)));
    show("incr", said(make()?.increment("n", 1)));
    show("delete", said(make()?.delete("d")));
    let kept = make()?;
    for _ in 0..5 {
        let _ = kept.get::<String>("g");
    }
    println!("ready");
    let mut line = String::new();
    let _ = std::io::stdin().read_line(&mut line);
    show("then", said(kept.get::<String>("g")));
    Ok(())
}
