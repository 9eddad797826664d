-- Drives `agentls serve` from a headless Neovim and writes down what happened, as JSON.
-- AGENTLS_TEST holds: cmd, root, file, dirty (lines, or null), out.
local test = vim.json.decode(vim.env.AGENTLS_TEST, { luanil = { object = true } })
local updates, asked = {}, {}

local function lines()
  return vim.api.nvim_buf_get_lines(0, 0, -1, false)
end

vim.cmd.edit(test.file)
if test.dirty then
  vim.api.nvim_buf_set_lines(0, 0, -1, false, test.dirty)
  -- What the user did is an undo step of its own, as it is when keys are typed.
  vim.cmd('let &g:undolevels = &g:undolevels')
end

local id = assert(vim.lsp.start({
  name = 'agentls',
  cmd = test.cmd,
  root_dir = test.root,
  init_options = { capabilities = { permission = true } },
  handlers = {
    ['agent/session/update'] = function(_, params)
      table.insert(updates, params.update)
    end,
    ['agent/session/requestPermission'] = function(_, params)
      table.insert(asked, params.toolCall.title)
      return { outcome = { outcome = 'selected', optionId = 'allow_once' } }
    end,
  },
}))
local client = assert(vim.lsp.get_client_by_id(id))
assert(vim.wait(30000, function()
  return client.initialized
end, 5))

local function request(method, params)
  local response = assert(client:request_sync(method, params, 60000, 0))
  assert(response.err == nil, vim.inspect(response.err))
  return response.result
end

local session = request('agent/session/new', vim.empty_dict())
local result = request('agent/session/prompt', {
  sessionId = session.sessionId,
  prompt = { { type = 'text', text = 'go' } },
  context = { textDocument = { uri = vim.uri_from_bufnr(0) } },
})
local report = {
  result = result,
  updates = updates,
  asked = asked,
  encoding = client.offset_encoding,
  lines = lines(),
  modified = vim.bo.modified,
}
vim.cmd.undo({ mods = { silent = true } })
report.undone = lines()

client:stop()
report.stopped = vim.wait(5000, function()
  return client:is_stopped()
end, 5)
vim.fn.writefile({ vim.json.encode(report) }, test.out)
vim.cmd('qall!')
