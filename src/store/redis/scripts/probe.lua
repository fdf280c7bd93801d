-- Does on a key of its own what the other scripts do, so that what the server does not permit is known before it is needed.
-- KEYS  1 probe; ARGV  1 channel
-- Returns 1, or an error that names the command
local key = KEYS[1]
local steps = {
  {'PUBLISH', ARGV[1], ''},
  {'TIME'},
  {'DEL', key},
  {'SET', key, '', 'PX', 60000},
  {'GET', key},
  {'GETDEL', key},
  {'HSET', key, 'a', '', 'b', ''},
  {'HGET', key, 'a'},
  {'HMGET', key, 'a', 'b'},
  {'HDEL', key, 'a', 'b'},
  {'ZADD', key, 0, 'a'},
  {'ZSCORE', key, 'a'},
  {'ZCARD', key},
  {'ZRANGE', key, 0, -1},
  {'ZRANDMEMBER', key, 1},
  {'ZREMRANGEBYSCORE', key, '-inf', -1},
  {'ZREM', key, 'a'},
  {'RPUSH', key, 'a'},
  {'PEXPIRE', key, 60000},
  {'LLEN', key},
  {'LINDEX', key, 0},
  {'LRANGE', key, 0, 0},
  {'LTRIM', key, 1, 0},
  {'EXISTS', key},
}
for _, step in ipairs(steps) do
  local answer = redis.pcall(unpack(step))
  if type(answer) == 'table' and answer.err then
    return redis.error_reply('PROBE ' .. step[1] .. ' does not work: ' .. answer.err)
  end
end
return 1
