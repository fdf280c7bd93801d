-- Frees a slot if its value begins so: with an id, or with an id and the nonce of one reservation.
-- KEYS  1 slot; ARGV  1 beginning
local value = redis.call('GET', KEYS[1])
if value and string.sub(value, 1, #ARGV[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0
