/**
 * The ledger in Redis' words: the rules of `EffectRecord` as Lua scripts, each one atomic step on one key.
 *
 * A row is a hash under the prefix and the effect key, verbatim: Redis keys are bytes, so no two effect keys share one.
 * Nothing of a caller's is ever part of a script's text.
 *
 * A key without a row gets its first token from the server's clock in microseconds, so that tokens grow over removals
 * without a counter that all keys would share, which a cluster could not keep beside them. For a day after a removal the
 * hash stays as a mark that holds the last token, in case the clock is set back.
 */

/** The fields of a row, in the order in which scripts answer a whole row. */
export const fields = [
  "tool",
  "run",
  "status",
  "doubt",
  "token",
  "claim",
  "attempt",
  "taken",
  "owner",
  "lease",
  "print",
  "eseen",
  "eprint",
  "result",
  "outcome",
  "created",
  "updated",
  "seen",
  "born",
  "rev"
] as const

/** What a row says of its own form. One that says something else is never taken for an absent one. */
export const version = "1"

const markedFor = 24 * 60 * 60

/** ARGV[1] is the time in milliseconds, for tests, or empty: then it is the server's. */
const prelude = `
local key = KEYS[1]
local time = redis.call('TIME')
local micros = time[1] * 1000000 + time[2]
local now = tonumber(ARGV[1]) or math.floor(micros / 1000)
local function text(number) return string.format('%.0f', number) end
local function one(value, ...)
  for _, each in ipairs({...}) do if value == each then return true end end
  return false
end
-- the row, or nothing; then what cannot be read of it, or the token that the next one must be above
local function load()
  local values = redis.pcall('HMGET', key, 'v', '${fields.join("', '")}')
  if values.err then return nil, 'its row is no hash', '' end
  if not values[1] then
    if redis.call('EXISTS', key) == 1 then return nil, 'its row says no version', '' end
    return nil, nil, 0
  end
  local row = {}
  for index, name in ipairs({'${fields.join("', '")}'}) do row[name] = values[index + 1] end
  if values[1] == 'removed' then return nil, nil, tonumber(row.token) or 0 end
  if values[1] ~= '${version}' then return nil, 'its row has version ' .. values[1] .. ', which is not known here', row.tool or '' end
  for _, name in ipairs({'token', 'attempt', 'lease', 'created', 'updated', 'seen', 'born', 'rev'}) do
    local number = tonumber(row[name])
    if not number then return nil, 'the field ' .. name .. ' of its row is no number', row.tool or '' end
    row[name] = number
  end
  for _, name in ipairs({'tool', 'run', 'claim', 'owner', 'print', 'eseen', 'eprint', 'result', 'outcome', 'taken'}) do
    if not row[name] then return nil, 'the field ' .. name .. ' of its row is missing', row.tool or '' end
  end
  if row.eseen ~= '' and not tonumber(row.eseen) then return nil, 'the field eseen of its row is no number', row.tool end
  if not one(row.status, 'held', 'released', 'recorded') then return nil, 'the status of its row is not known', row.tool end
  if not one(row.doubt, 'none', 'tried', 'inDoubt') then return nil, 'the doubt of its row is not known', row.tool end
  if row.status == 'recorded' then
    if row.result == '' then return nil, 'the result of its row is missing', row.tool end
    if not one(row.outcome, 'executed', 'reconciled', 'resolved') then return nil, 'the outcome of its row is not known', row.tool end
  end
  return row, nil, 0
end
local function write(...)
  redis.call('HSET', key, ...)
  redis.call('HINCRBY', key, 'rev', 1)
end
local function wake(channel) redis.call('PUBLISH', channel, redis.sha1hex(key)) end
`

/** now, tool, run, owner, claimId, lease, fingerprint */
export const claim = `${prelude}
local tool, run, owner, claim, lease, print = ARGV[2], ARGV[3], ARGV[4], ARGV[5], tonumber(ARGV[6]), ARGV[7]
local row, problem, rest = load()
if problem then return {'U', rest, problem} end
if not row then
  local token = math.max(micros, rest + 1)
  redis.call('DEL', key)
  redis.call('HSET', key, 'v', '${version}', 'tool', tool, 'run', run, 'status', 'held', 'doubt', 'none', 'token', text(token),
    'claim', claim, 'attempt', '1', 'taken', '0', 'owner', owner, 'lease', text(now + lease), 'print', print,
    'eseen', '', 'eprint', '', 'result', '', 'outcome', '', 'created', text(now), 'updated', text(now),
    'seen', text(now), 'born', text(micros), 'rev', '1')
  return {'C', text(token), '1', 'none', '0', '', ''}
end
if row.status == 'recorded' then return {'R', row.tool, row.result, row.outcome, row.print} end
local function granted(token, attempt, doubt, taken, eseen, eprint)
  local age = ''
  if eseen ~= '' then age = text(math.max(0, now - tonumber(eseen))) end
  return {'C', text(token), text(attempt), doubt, taken, age, eprint}
end
local held = row.status == 'held'
if held and row.claim == claim and row.tool == tool then
  write('lease', text(now + lease), 'updated', text(now), 'seen', text(now))
  return granted(row.token, row.attempt, row.doubt, row.taken, row.eseen, row.eprint)
end
local remaining = 0
if held then remaining = math.max(0, row.lease - now) end
if row.tool ~= tool or remaining > 0 then return {'H', row.tool, row.owner, text(remaining)} end
local doubt, taken, eseen, eprint = row.doubt, '0', '', ''
if held then doubt, taken = 'inDoubt', '1' end
if doubt ~= 'none' then
  eprint = row.print
  if held then eseen = text(math.min(row.lease, now)) else eseen = text(row.seen) end
end
write('run', run, 'status', 'held', 'doubt', doubt, 'token', text(row.token + 1), 'claim', claim,
  'attempt', text(row.attempt + 1), 'taken', taken, 'owner', owner, 'lease', text(now + lease), 'print', print,
  'eseen', eseen, 'eprint', eprint, 'updated', text(now), 'seen', text(now))
return granted(row.token + 1, row.attempt + 1, doubt, taken, eseen, eprint)
`

/** now, token, result, outcome, fingerprint, channel */
export const complete = `${prelude}
local row = load()
if not row or row.token ~= tonumber(ARGV[2]) or row.status == 'released' then return {'lost'} end
if row.status == 'recorded' then return {'ok'} end
write('status', 'recorded', 'doubt', 'none', 'result', ARGV[3], 'outcome', ARGV[4], 'print', ARGV[5], 'eseen', '', 'eprint', '',
  'updated', text(now), 'seen', text(now))
wake(ARGV[6])
return {'ok'}
`

/** now, token, verdict, cleared ("1" or "0"), channel */
export const release = `${prelude}
local verdict, cleared = ARGV[3], ARGV[4] == '1'
local row = load()
if not row or row.token ~= tonumber(ARGV[2]) or row.status == 'recorded' then return {'lost'} end
if row.status == 'released' then return {'ok'} end
local before, seen, print = row.doubt, text(now), row.print
if cleared then before = 'none' end
local looked = verdict == 'clean' or (verdict == 'tried' and row.doubt == 'inDoubt')
if looked and not cleared and row.eseen ~= '' then seen, print = row.eseen, row.eprint end
local doubt = before
if verdict == 'inDoubt' or before == 'inDoubt' then doubt = 'inDoubt' elseif verdict == 'tried' then doubt = 'tried' end
write('status', 'released', 'doubt', doubt, 'taken', '0', 'lease', text(now), 'eseen', '', 'eprint', '',
  'updated', text(now), 'seen', seen, 'print', print)
wake(ARGV[5])
return {'ok'}
`

/** now, token, lease */
export const renew = `${prelude}
local row = load()
if not row or row.token ~= tonumber(ARGV[2]) or row.status ~= 'held' then return {'lost'} end
write('lease', text(now + tonumber(ARGV[3])), 'updated', text(now), 'seen', text(now))
return {'ok'}
`

/** now. Answers the time, and the fields of the row. */
export const get = `${prelude}
local row, problem, rest = load()
if problem then return {'U', rest, problem} end
if not row then return {'N', text(now)} end
local values = {'V', text(now)}
for _, name in ipairs({'${fields.join("', '")}'}) do
  local value = row[name]
  if type(value) == 'number' then value = text(value) end
  values[#values + 1] = value
end
return values
`

/** now, the revision that the row must still have, channel, and the fields to write with their values. */
export const replace = `${prelude}
local row = load()
if not row or row.rev ~= tonumber(ARGV[2]) then return {'changed'} end
write(unpack(ARGV, 4))
wake(ARGV[3])
return {'ok'}
`

/** now, channel. A row that cannot be read is removed too: somebody has to be able to. */
export const remove = `${prelude}
if redis.call('EXISTS', key) == 0 then return {'0'} end
local row, problem, rest = load()
if not row and not problem then return {'0'} end
local token = micros
if row then token = math.max(token, row.token) end
redis.call('DEL', key)
redis.call('HSET', key, 'v', 'removed', 'token', text(token))
redis.call('EXPIRE', key, ${markedFor})
wake(ARGV[2])
return {'1'}
`

/** now, the age in milliseconds that is old, channel */
export const prune = `${prelude}
local row = load()
if not row or row.status == 'held' or row.doubt == 'inDoubt' or row.updated >= now - tonumber(ARGV[2]) then return {'0'} end
redis.call('DEL', key)
wake(ARGV[3])
return {'1'}
`
