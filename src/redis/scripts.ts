/**
 * The ledger in Redis' words: the rules of `EffectRecord` as Lua scripts, each one atomic step on one key.
 *
 * A row is a hash under the prefix and the effect key, verbatim: Redis keys are bytes, so no two effect keys share one. Its
 * fields are `v`, the version of its form, `status`, `result`, and `row`, everything else as one MessagePack array: a field
 * each costs the server four times as much. Nothing of a caller's is ever part of a script's text.
 *
 * A key without a row gets its first token from the server's clock in microseconds, so that tokens grow over removals
 * without a counter that all keys would share, which a cluster could not keep beside them. For a day after a removal the
 * hash stays as a mark that holds the last token, in case the clock is set back.
 */

/** What a row says of its own form. One that says something else is never taken for an absent one. */
const version = "1"

/** How long the mark of a removal stays, in seconds. */
const markedFor = 24 * 60 * 60

/** The values of `row`, in order, and what each is. `taken` is 0 or 1; `eseen` is -1 where there was no earlier attempt. */
const types = {
  tool: "string",
  run: "string",
  doubt: "string",
  token: "number",
  claim: "string",
  attempt: "number",
  taken: "number",
  owner: "string",
  lease: "number",
  print: "string",
  eseen: "number",
  eprint: "string",
  outcome: "string",
  created: "number",
  updated: "number",
  seen: "number",
  born: "number",
  rev: "number"
} as const

/** The names of the values of `row`, in order. */
export const names = Object.keys(types) as ReadonlyArray<keyof typeof types>

/** Where a value is, in Lua. */
const at = Object.fromEntries(names.map((name, index) => [name, `row[${index + 1}]`])) as Record<
  keyof typeof types,
  string
>

const indexesOf = (type: "string" | "number"): string =>
  names.flatMap((name, index) => types[name] === type ? [index + 1] : []).join(", ")

/** ARGV[1] is the time in milliseconds, for tests, or empty: then it is the server's. */
const prelude = `
local key = KEYS[1]
local time = redis.call('TIME')
local micros = time[1] * 1000000 + time[2]
local now = tonumber(ARGV[1]) or math.floor(micros / 1000)
local function text(number) return string.format('%.0f', number) end
-- No row has the revision of another, removed one of the key: a row's number counts from 1, but no token comes twice.
local function revision(row) return text(${at.token}) .. ':' .. text(${at.rev}) end
-- the row and its status and result; or nothing, and what cannot be read of it; or the token that the next must be above,
-- which is 0 only where there is no mark
local function load()
  local values = redis.pcall('HMGET', key, 'v', 'status', 'row', 'result')
  if values.err then
    -- any other error is the server's, and says nothing of the row
    if not string.find(values.err, 'WRONGTYPE', 1, true) then error(values) end
    return nil, 'its row is no hash', ''
  end
  local status = values[2]
  if not values[1] then
    if redis.call('EXISTS', key) == 1 then return nil, 'its row says no version', '' end
    return nil, nil, 0
  end
  if values[1] == 'removed' then return nil, nil, math.max(1, tonumber(values[3]) or 1) end
  if values[1] ~= '${version}' then return nil, 'its row has version ' .. values[1] .. ', which is not known here', '' end
  local ok, row = pcall(cmsgpack.unpack, values[3])
  if not ok or type(row) ~= 'table' then return nil, 'its row cannot be unpacked', '' end
  for _, index in ipairs({${indexesOf("string")}}) do
    if type(row[index]) ~= 'string' then return nil, 'value ' .. index .. ' of its row is no text', '' end
  end
  for _, index in ipairs({${indexesOf("number")}}) do
    if type(row[index]) ~= 'number' then return nil, 'value ' .. index .. ' of its row is no number', ${at.tool} end
  end
  if ${at.doubt} ~= 'none' and ${at.doubt} ~= 'tried' and ${at.doubt} ~= 'inDoubt' then
    return nil, 'the doubt of its row is not known', ${at.tool}
  end
  if status == 'recorded' then
    if not values[4] or values[4] == '' then return nil, 'the result of its row is missing', ${at.tool} end
    if ${at.outcome} ~= 'executed' and ${at.outcome} ~= 'reconciled' and ${at.outcome} ~= 'resolved' then
      return nil, 'the outcome of its row is not known', ${at.tool}
    end
  elseif status ~= 'held' and status ~= 'released' then
    return nil, 'the status of its row is not known', ${at.tool}
  end
  return row, status, values[4] or ''
end
local function write(row, status, ...)
  ${at.rev} = ${at.rev} + 1
  redis.call('HSET', key, 'status', status, 'row', cmsgpack.pack(row), ...)
end
local function wake(channel) redis.call('PUBLISH', channel, redis.sha1hex(key)) end
`

/** now, tool, run, owner, claimId, lease, fingerprint */
export const claim = `${prelude}
local tool, run, owner, claim, lease, print = ARGV[2], ARGV[3], ARGV[4], ARGV[5], tonumber(ARGV[6]), ARGV[7]
local row, status, rest = load()
if not row then
  if status then return {'U', rest, status} end
  local token = math.max(micros, rest + 1)
  if rest > 0 then redis.call('DEL', key) end
  redis.call('HSET', key, 'v', '${version}', 'status', 'held', 'row', cmsgpack.pack({tool, run, 'none', token, claim, 1, 0, owner,
    now + lease, print, -1, '', '', now, now, now, micros, 1}))
  return {'C', text(token), '1', 'none', '0', '', ''}
end
if status == 'recorded' then return {'R', ${at.tool}, rest, ${at.outcome}, ${at.print}} end
local function granted()
  local age = ''
  if ${at.eseen} >= 0 then age = text(math.max(0, now - ${at.eseen})) end
  return {'C', text(${at.token}), text(${at.attempt}), ${at.doubt}, text(${at.taken}), age, ${at.eprint}}
end
local held = status == 'held'
if held and ${at.claim} == claim and ${at.tool} == tool then
  ${at.lease}, ${at.updated}, ${at.seen} = now + lease, now, now
  write(row, 'held')
  return granted()
end
local remaining = 0
if held then remaining = math.max(0, ${at.lease} - now) end
if ${at.tool} ~= tool or remaining > 0 then return {'H', ${at.tool}, ${at.owner}, text(remaining)} end
local eseen, eprint = -1, ''
if held or ${at.doubt} ~= 'none' then
  eprint = ${at.print}
  if held then eseen = math.min(${at.lease}, now) else eseen = ${at.seen} end
end
if held then ${at.doubt}, ${at.taken} = 'inDoubt', 1 else ${at.taken} = 0 end
${at.run}, ${at.token}, ${at.claim}, ${at.attempt} = run, ${at.token} + 1, claim, ${at.attempt} + 1
${at.owner}, ${at.lease}, ${at.print}, ${at.eseen}, ${at.eprint} = owner, now + lease, print, eseen, eprint
${at.updated}, ${at.seen} = now, now
write(row, 'held')
return granted()
`

/** now, token, result, outcome, fingerprint, channel */
export const complete = `${prelude}
local row, status = load()
if not row or ${at.token} ~= tonumber(ARGV[2]) or status == 'released' then return {'lost'} end
if status == 'recorded' then return {'ok'} end
${at.doubt}, ${at.outcome}, ${at.print}, ${at.eseen}, ${at.eprint} = 'none', ARGV[4], ARGV[5], -1, ''
${at.updated}, ${at.seen} = now, now
write(row, 'recorded', 'result', ARGV[3])
wake(ARGV[6])
return {'ok'}
`

/** now, token, verdict, cleared ("1" or "0"), channel */
export const release = `${prelude}
local verdict, cleared = ARGV[3], ARGV[4] == '1'
local row, status = load()
if not row or ${at.token} ~= tonumber(ARGV[2]) or status == 'recorded' then return {'lost'} end
if status == 'released' then return {'ok'} end
local before = ${at.doubt}
if cleared then before = 'none' end
local looked = verdict == 'clean' or (verdict == 'tried' and ${at.doubt} == 'inDoubt')
if looked and not cleared and ${at.eseen} >= 0 then
  ${at.seen}, ${at.print} = ${at.eseen}, ${at.eprint}
else
  ${at.seen} = now
end
if verdict == 'inDoubt' or before == 'inDoubt' then
  ${at.doubt} = 'inDoubt'
elseif verdict == 'tried' then
  ${at.doubt} = 'tried'
else
  ${at.doubt} = before
end
${at.taken}, ${at.lease}, ${at.eseen}, ${at.eprint}, ${at.updated} = 0, now, -1, '', now
write(row, 'released')
wake(ARGV[5])
return {'ok'}
`

/** now, token, lease */
export const renew = `${prelude}
local row, status = load()
if not row or ${at.token} ~= tonumber(ARGV[2]) or status ~= 'held' then return {'lost'} end
${at.lease}, ${at.updated}, ${at.seen} = now + tonumber(ARGV[3]), now, now
write(row, 'held')
return {'ok'}
`

/** now, and `brief` where the result is not wanted. Answers the time, the status, the result, and the values of the row. */
export const get = `${prelude}
local row, status, rest = load()
if not row then
  if status then return {'U', rest, status} end
  return {'N'}
end
if ARGV[2] == 'brief' then rest = '' end
local values = {'V', text(now), status, rest}
for index = 1, ${names.length} do
  local value = row[index]
  if type(value) == 'number' then value = text(value) end
  values[index + 4] = value
end
return values
`

/**
 * now, the revision that the row must still have, channel, and then: status, doubt, token, taken, lease, fingerprint, eseen,
 * eprint, result, outcome, updated, seen.
 */
export const replace = `${prelude}
local row = load()
if not row or revision(row) ~= ARGV[2] then return {'changed'} end
${at.doubt}, ${at.token}, ${at.taken}, ${at.lease} = ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
${at.print}, ${at.eseen}, ${at.eprint}, ${at.outcome} = ARGV[9], tonumber(ARGV[10]), ARGV[11], ARGV[13]
${at.updated}, ${at.seen} = tonumber(ARGV[14]), tonumber(ARGV[15])
write(row, ARGV[4], 'result', ARGV[12])
wake(ARGV[3])
return {'ok'}
`

/** now, channel. A row that cannot be read is removed too: somebody has to be able to. */
export const remove = `${prelude}
local row, status = load()
if not row and not status then return {'0'} end
local token = micros
if row then token = math.max(token, ${at.token}) end
redis.call('DEL', key)
redis.call('HSET', key, 'v', 'removed', 'row', text(token))
redis.call('EXPIRE', key, ${markedFor})
wake(ARGV[2])
return {'1'}
`

/** now, the age in milliseconds that is old, channel */
export const prune = `${prelude}
local row, status = load()
if not row or status == 'held' or ${at.doubt} == 'inDoubt' or ${at.updated} >= now - tonumber(ARGV[2]) then return {'0'} end
redis.call('DEL', key)
wake(ARGV[3])
return {'1'}
`
