-- Puts events that belong to no record into an outbox.
-- KEYS  1 outbox, 2 outbox clock
-- ARGV  1 nonce, 2 milliseconds for which they are kept, 3 most events in the outbox; then the events
-- Returns 1 done, -1 the outbox is full
local nonces = redis.call('HGET', KEYS[2], 'nonces') or ''
if known(nonces, ARGV[1]) then
  return 1
end
if redis.call('LLEN', KEYS[1]) >= tonumber(ARGV[3]) then
  return -1
end
redis.call('HSET', KEYS[2], 'nonces', with(nonces, ARGV[1]))
note(KEYS[1], KEYS[2], ARGV[2], 4)
return 1
