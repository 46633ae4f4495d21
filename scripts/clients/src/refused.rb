# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
#
# scripts/clients/refused runs this: the calls of Dalli.
# usage: refused.rb VARIANT TIMEOUT HOST PORT
begin
  require 'dalli'
rescue LoadError
  exit 77
end
require 'logger'
Dalli.logger = Logger.new(File::NULL)
variant, timeout, host, port = ARGV

def said
  yield.inspect
rescue StandardError => e
  "#{e.class}: #{e.message}"
end

CALLS = {
  'get' => ->(c) { c.get('g', raw: true) },
  'get_multi' => ->(c) { c.get_multi('m1', 'm2') },
  'set' => lambda { |c|
    stored = c.set('s', '2')
    stored.is_a?(Integer) ? true : stored # the item's CAS unique, another one each time
  },
  'incr' => ->(c) { c.incr('n', 1) },
  'delete' => ->(c) { c.delete('d') }
}.freeze

name = "Dalli #{Dalli::VERSION}, #{variant}"
make = lambda do
  Dalli::Client.new("#{host}:#{port}", protocol: variant.to_sym, socket_timeout: timeout.to_i)
end
CALLS.each { |call, function| puts [name, call, said { function.call(make.call) }].join("\t") }
kept = make.call
5.times { said { CALLS['get'].call(kept) } }
puts 'ready'
$stdout.flush
$stdin.gets
puts [name, 'then', said { CALLS['get'].call(kept) }].join("\t")
