-- For https://github.com/mfussenegger/nvim-dap: put this into your init.lua.
local dap = require("dap")

dap.adapters.fluidnb = function(callback, config)
  if config.request == "attach" then
    callback({ type = "server", host = config.host or "127.0.0.1", port = config.port })
  else
    local words = { "-m", "fluidnb", "debug", "--stdio", config.program }
    vim.list_extend(words, config.args or {})
    callback({ type = "executable", command = config.python or "python3", args = words })
  end
end

dap.configurations.python = dap.configurations.python or {}
vim.list_extend(dap.configurations.python, {
  { type = "fluidnb", request = "launch", name = "Fluid: this script", program = "${file}", stopOnEntry = true },
  {
    type = "fluidnb",
    request = "attach",
    name = "Fluid: join",
    port = function() return tonumber(vim.fn.input("port: ")) end,
    token = function() return vim.fn.readfile(vim.fn.input("token file: "))[1] end,
  },
})
