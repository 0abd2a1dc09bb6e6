//! The same jobs in nginx with Lua, as one writes them there: fields by `ngx.var`, patterns with `jo`,
//! JSON by lua-cjson, what `require` and `init_by_lua` keep made once, digests by FFI to the libcrypto that
//! nginx is linked with.

use super::cases::{COUNT_HOST, HOOKED_HOST, ISSUER, REFUSED_VARIANT, SECRET, is_green};
use super::job::Job;
use super::program::KEYS_FILE;
use crate::load::{CLIENT_HEADER, HOST, KEY_HEADER, PREFIXES, VARIANT_HEADER};

/// What lua-resty-hmac, lua-resty-string and lua-resty-jwt are used for; Debian has none of them. The
/// context of the HMAC and its key are made once for a worker, which lua-resty-hmac can do and
/// lua-resty-jwt doesn't.
const DIGEST: &str = r#"local ffi = require "ffi"
local C = ffi.C

ffi.cdef [[
typedef struct hmac_ctx_st HMAC_CTX;
HMAC_CTX *HMAC_CTX_new(void);
int HMAC_Init_ex(HMAC_CTX *ctx, const void *key, int len, const void *md, void *impl);
int HMAC_Update(HMAC_CTX *ctx, const unsigned char *data, size_t len);
int HMAC_Final(HMAC_CTX *ctx, unsigned char *md, unsigned int *len);
const void *EVP_sha256(void);
int CRYPTO_memcmp(const void *a, const void *b, size_t len);
unsigned char *ngx_hex_dump(unsigned char *dst, const unsigned char *src, size_t len);
]]

local secret = "SECRET"
local context = C.HMAC_CTX_new()
C.HMAC_Init_ex(context, secret, #secret, C.EVP_sha256(), nil)
local digest = ffi.new("unsigned char[32]")
local digits = ffi.new("unsigned char[64]")

local _M = {}

function _M.hmac_sha256(data)
    C.HMAC_Init_ex(context, nil, 0, nil, nil)
    C.HMAC_Update(context, data, #data)
    C.HMAC_Final(context, digest, nil)
    return ffi.string(digest, 32)
end

function _M.hex(bytes)
    C.ngx_hex_dump(digits, bytes, #bytes)
    return ffi.string(digits, #bytes * 2)
end

function _M.equal(a, b)
    return #a == #b and C.CRYPTO_memcmp(a, b, #a) == 0
end

return _M
"#;

const JWT: &str = r#"local cjson = require "cjson.safe"
local base64 = require "ngx.base64"
local digest = require "digest"
local _M = {}

function _M.verify(authorization)
    if not authorization then return end
    local found = ngx.re.match(authorization, [[^Bearer (([^.]+)\.([^.]+))\.([^.]*)$]], "jo")
    if not found then return end
    local header = cjson.decode(base64.decode_base64url(found[2]) or "")
    -- The token does not choose its algorithm.
    if type(header) ~= "table" or header.alg ~= "HS256" then return end
    local given = base64.decode_base64url(found[4])
    if not given or not digest.equal(digest.hmac_sha256(found[1]), given) then return end
    local claims = cjson.decode(base64.decode_base64url(found[3]) or "")
    if type(claims) ~= "table" then return end
    local now = ngx.time()
    if type(claims.exp) ~= "number" or claims.exp <= now then return end
    if claims.nbf and claims.nbf > now then return end
    if claims.iss ~= "ISSUER" then return end
    return claims
end

return _M
"#;

/// The modules beside the configuration.
pub(super) fn files(job: Job) -> Vec<(&'static str, String)> {
    let digest = ("digest.lua", DIGEST.replace("SECRET", SECRET));
    match job {
        Job::Table100 | Job::Table100k => vec![("keys.lua", keys())],
        Job::Hmac => vec![digest],
        Job::Jwt => vec![digest, ("jwt.lua", JWT.replace("ISSUER", ISSUER))],
        _ => Vec::new(),
    }
}

/// The table is read as JSON: LuaJIT compiles no module with more than 65,536 constants.
fn keys() -> String {
    format!(
        "local file = assert(io.open(ngx.config.prefix() .. \"/{KEYS_FILE}\"))\n\
         local keys = require(\"cjson\").decode(file:read(\"*a\"))\nfile:close()\nreturn keys\n"
    )
}

/// What stands in the block `http` above the servers.
pub(super) fn settings(job: Job) -> String {
    let own = match job {
        Job::Table100 | Job::Table100k => "init_by_lua_block { require \"keys\" }\n",
        Job::Jwt => "init_by_lua_block { require \"cjson.safe\" require \"jwt\" }\n",
        Job::Counter => "lua_shared_dict hits 1m;\n",
        Job::JsonBody => {
            "init_by_lua_block { require \"cjson.safe\" }\n\
             client_body_buffer_size 64k;\n"
        }
        _ => "",
    };
    format!("lua_package_path \"$prefix/?.lua;;\";\n{own}")
}

/// The servers, `proxy` being what all locations have: one without Lua, and one with the job.
pub(super) fn servers(job: Job, listen: &str, proxy: &str) -> String {
    let (variable, pool) = match job {
        Job::Prefixes => ("    set $pool \"blue\";\n", "$pool"),
        _ => ("", "blue"),
    };
    let code = code(job);
    let mut text = format!(
        "server {{\n  listen {listen} backlog=4096;\n  server_name {HOST};\n  \
         location / {{\n    proxy_pass http://blue;\n{proxy}  }}\n}}\n\
         server {{\n  listen {listen};\n  server_name {HOOKED_HOST};\n  \
         location / {{\n{variable}    access_by_lua_block {{\n{code}    }}\n    \
         proxy_pass http://{pool};\n{proxy}  }}\n}}\n"
    );
    if job == Job::Counter {
        text += &format!(
            "server {{\n  listen {listen};\n  server_name {COUNT_HOST};\n  location / {{\n    \
             content_by_lua_block {{\n      \
             local count = tostring(ngx.shared.hits:get(\"all\") or 0)\n      \
             ngx.header.content_length = #count\n      ngx.print(count)\n    }}\n  }}\n}}\n"
        );
    }
    text
}

fn code(job: Job) -> String {
    let variable = |header: &str| header.replace('-', "_");
    match job {
        Job::Empty => String::new(),
        Job::HeaderGet => format!(
            "      if ngx.var.http_{} == \"{REFUSED_VARIANT}\" then return ngx.exit(403) end\n",
            variable(VARIANT_HEADER)
        ),
        Job::HeaderSet => format!(
            "      ngx.req.set_header(\"{CLIENT_HEADER}\", \"{}\")\n",
            super::cases::CLIENT
        ),
        Job::Prefixes => prefixes(),
        Job::Table100 | Job::Table100k => format!(
            "      local key = ngx.var.http_{}\n      \
             if not key or not require(\"keys\")[key] then return ngx.exit(401) end\n",
            variable(KEY_HEADER)
        ),
        Job::Counter => "      ngx.shared.hits:incr(\"all\", 1, 0)\n".to_owned(),
        Job::Regex => r#"      local found = ngx.re.match(ngx.var.uri, [[^/items/([0-9]+)$]], "jo")
      if not found then return ngx.exit(404) end
      if found[1] == "13" then return ngx.exit(403) end
"#
        .to_owned(),
        Job::Hmac => r#"      local digest = require "digest"
      local made = digest.hex(digest.hmac_sha256(ngx.var.uri))
      local given = ngx.var.http_x_signature
      if not given or not digest.equal(made, given) then return ngx.exit(401) end
"#
        .to_owned(),
        Job::Jwt => r#"      local claims = require("jwt").verify(ngx.var.http_authorization)
      if not claims then return ngx.exit(401) end
"#
        .to_owned(),
        Job::JsonBody => r#"      ngx.req.read_body()
      local order = require("cjson.safe").decode(ngx.req.get_body_data() or "")
      if type(order) ~= "table" or order.currency ~= "EUR" then return ngx.exit(400) end
"#
        .to_owned(),
        Job::Loop => r#"      local sum = 0
      for n = 0, 999 do sum = sum + n end
      if sum ~= 499500 then return ngx.exit(500) end
"#
        .to_owned(),
    }
}

/// One branch after the other.
fn prefixes() -> String {
    let mut text = "      local uri = ngx.var.uri\n      local pool = \"blue\"\n      ".to_owned();
    for (number, prefix) in PREFIXES.iter().enumerate() {
        let pool = if is_green(number) { "green" } else { "blue" };
        let start = format!("/{prefix}/");
        let length = start.len();
        let lead = if number == 0 { "if" } else { "elseif" };
        text +=
            &format!("{lead} uri:sub(1, {length}) == \"{start}\" then pool = \"{pool}\"\n      ");
    }
    text + "end\n      ngx.var.pool = pool\n"
}
