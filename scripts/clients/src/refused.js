// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 the memcached-qos authors
//
// scripts/clients/refused runs this: the calls of memjs and of memcached, both of npm.
// usage: refused.js LIBRARY VARIANT TIMEOUT HOST PORT
'use strict';
const path = require('path');
const os = require('os');

const folder = path.join(process.env.CLIENTS_FOLDER ||
    path.join(process.env.XDG_CACHE_HOME || path.join(os.homedir(), '.cache'), 'memcached-qos/clients'),
    'node/node_modules');
const [library, , timeout, host, port] = process.argv.slice(2);
let Library;
try {
    Library = require(path.join(folder, library));
} catch (e) {
    process.exit(77);
}
const {version} = require(path.join(folder, library, 'package.json'));
const plain = value => Buffer.isBuffer(value) ? value.toString() : value;
const call = (c, name, ...args) => new Promise((done, fail) =>
    c[name](...args, (e, data) => e ? fail(e) : done(data)));

const all = {
    memjs: {
        name: `memjs ${version}`,
        make: () => Library.Client.create(`${host}:${port}`, {timeout: +timeout, logger: {log() {}}}),
        get: async c => plain((await c.get('g')).value),
        set: c => c.set('s', '2', {}),
        incr: async c => (await c.increment('n', 1, {})).value,
        delete: c => c.delete('d'),
    },
    memcached: {
        name: `memcached (npm) ${version}`,
        make: () => new Library(`${host}:${port}`, {timeout: timeout * 1000}),
        get: c => call(c, 'get', 'g'),
        get_multi: c => call(c, 'getMulti', ['m1', 'm2']),
        set: c => call(c, 'set', 's', '2', 0),
        incr: c => call(c, 'incr', 'n', 1),
        delete: c => call(c, 'del', 'd'),
    },
};

async function said(promise) {
    try {
        const value = await promise();
        return value === undefined ? 'undefined' : JSON.stringify(value);
    } catch (e) {
        return e instanceof Error ? `${e.name}: ${e.message}` : `error ${JSON.stringify(e)}`;
    }
}

(async () => {
    const calls = all[library];
    const show = (name, result) => console.log([calls.name, name, result].join('\t'));
    for (const name of ['get', 'get_multi', 'set', 'incr', 'delete']) {
        show(name, calls[name] ? await said(() => calls[name](calls.make())) : '(none)');
    }
    const kept = calls.make();
    for (let i = 0; i < 5; i++) {
        await said(() => calls.get(kept));
    }
    console.log('ready');
    await new Promise(done => process.stdin.once('data', done));
    show('then', await said(() => calls.get(kept)));
    process.exit(0);
})();
