-- wrk script: posts the files named in BODIES (separated by blanks) in turn and prints one line of JSON.
local requests, count, turn = {}, 0, 0

function init()
  for name in string.gmatch(os.getenv("BODIES"), "%S+") do
    local file = assert(io.open(name, "rb"))
    local body = file:read("*a")
    file:close()
    count = count + 1
    requests[count] = wrk.format("POST", nil, { ["Content-Type"] = "application/json" }, body)
  end
end

function request()
  turn = turn % count + 1
  return requests[turn]
end

function done(summary, latency)
  local e = summary.errors
  io.write(string.format('RESULT {"n":%d,"rps":%.1f,"p50_us":%d,"p99_us":%d,"bad":%d}\n', summary.requests,
    summary.requests / (summary.duration / 1e6), latency:percentile(50), latency:percentile(99),
    e.connect + e.read + e.write + e.status + e.timeout))
end
