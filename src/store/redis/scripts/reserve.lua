-- Takes a slot if it is free, or if it still has the value that its taker found to be stale.
-- KEYS  1 slot; ARGV  1 id (16 bytes), 2 nonce (16 bytes), 3 milliseconds for which it is kept, 4 stale value or ''
-- Returns {'new', the time in milliseconds}, {'own', the time} if the id had it, or {its value, milliseconds since it was
-- taken}
local value = redis.call('GET', KEYS[1])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local owned = value and string.sub(value, 1, 16) == ARGV[1]
if value and value ~= ARGV[4] and not owned then
  return {value, now - tonumber(string.sub(value, 33))}
end
-- The newest reservation's nonce stands there, so that an older one that fails does not give up what is this one's.
redis.call('SET', KEYS[1], ARGV[1] .. ARGV[2] .. string.format('%.0f', now), 'PX', ARGV[3])
return {owned and 'own' or 'new', now}
