-- What lua-resty-hmac and lua-resty-string are used for; Debian has neither.
local ffi = require "ffi"

ffi.cdef [[
const void *EVP_sha256(void);
unsigned char *HMAC(const void *md, const void *key, int key_len,
                    const unsigned char *data, size_t n,
                    unsigned char *out, unsigned int *out_len);
]]

local _M = {}

function _M.hmac_sha256(key, data)
    local out = ffi.new("unsigned char[32]")
    -- nginx itself is linked with libcrypto.
    ffi.C.HMAC(ffi.C.EVP_sha256(), key, #key, data, #data, out, nil)
    return ffi.string(out, 32)
end

function _M.hex(bytes)
    return (bytes:gsub(".", function(c) return ("%02x"):format(c:byte()) end))
end

-- In a time that does not tell where they differ.
function _M.equal(a, b)
    if #a ~= #b then return false end
    local differ = 0
    for i = 1, #a do
        differ = bit.bor(differ, bit.bxor(a:byte(i), b:byte(i)))
    end
    return differ == 0
end

return _M
