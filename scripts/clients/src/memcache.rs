// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 the memcached-qos authors
// scripts/clients/rust-memcache-client runs this against a server: text, then binary.
use std::collections::HashMap;

fn check<T: PartialEq + std::fmt::Debug>(what: &str, got: T, want: T) {
    if got != want {
        println!("rust-memcache-client: {}: got {:?}, not {:?}", what, got, want);
        std::process::exit(1);
    }
}

fn run(url: &str) -> Result<(), memcache::MemcacheError> {
    let c = memcache::Client::connect(url)?;
    c.flush()?;
    check("get of nothing", c.get::<String>("a")?, None);
    c.set("a", "one", 100)?;
    check("get", c.get::<String>("a")?, Some("one".to_string()));
    let _ = c.add("a", "x", 0); // what they return differs between the protocols
    let _ = c.replace("nix", "x", 0);
    check("add", c.get::<String>("a")?, Some("one".to_string()));
    check("replace", c.get::<String>("nix")?, None);
    c.append("a", "+")?;
    c.prepend("a", "-")?;
    check("append, prepend", c.get::<String>("a")?, Some("-one+".to_string()));
    let held: HashMap<String, (Vec<u8>, u32, Option<u64>)> = c.gets(&["a"])?;
    let unique = held["a"].2.unwrap();
    check("cas", c.cas("a", "new", 0, unique)?, true);
    check("cas again", c.cas("a", "newer", 0, unique)?, false);
    c.set("n", 10, 0)?;
    check("incr", c.increment("n", 5)?, 15);
    check("decr", c.decrement("n", 16)?, 0);
    check("touch", c.touch("a", 100)?, true);
    let large: Vec<u8> = (0..500000u32).map(|i| (i.wrapping_mul(2654435761) >> 24) as u8).collect();
    c.set("large", &large[..], 0)?;
    check("large", c.get::<Vec<u8>>("large")?.as_deref() == Some(&large[..]), true);
    for i in 0..200 {
        c.set(&format!("m{}", i), i, 0)?;
    }
    let keys: Vec<String> = (0..300).map(|i| format!("m{}", i)).collect();
    let keys: Vec<&str> = keys.iter().map(|k| k.as_str()).collect();
    let many: HashMap<String, i32> = c.gets(&keys)?;
    check("gets", many.len(), 200);
    check("gets", many["m77"], 77);
    check("delete", (c.delete("a")?, c.delete("a")?), (true, false));
    check("stats", c.stats()?.len(), 1);
    Ok(())
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    for protocol in ["ascii", "binary"] {
        let url = format!("memcache://{}:{}?protocol={}&timeout=20", args[1], args[2], protocol);
        if let Err(e) = run(&url) {
            println!("rust-memcache-client: {}: {}", protocol, e);
            std::process::exit(1);
        }
    }
    println!("rust-memcache-client: ok");
}
