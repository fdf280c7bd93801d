-- Puts the events that begin at ARGV[first] into an outbox, each under a stamp that is later than all before it: the
-- time in microseconds (16 digits), which the events of one change share, and their place among these (6 digits).
local function note(outbox, clock, kept, first)
  if #ARGV < first then
    return
  end
  local time = redis.call('TIME')
  local stamp = time[1] * 1000000 + time[2]
  local last = tonumber(redis.call('HGET', clock, 'stamp') or '0')
  if stamp <= last then
    stamp = last + 1
  end
  local written = string.format('%016.0f', stamp)
  redis.call('HSET', clock, 'stamp', written)
  for index = first, #ARGV do
    redis.call('RPUSH', outbox, written .. string.format('%06d', index - first) .. ARGV[index])
  end
  redis.call('PEXPIRE', clock, kept)
  redis.call('PEXPIRE', outbox, kept)
end
