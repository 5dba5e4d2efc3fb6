#pragma once

#include <span>
#include <string>

namespace tw {

/// Every environment variable tilewright reads; the table is env.def.
enum class Env {
#define TW_ENV(id, name, fallback, sentence) id,
#include "tw/base/env.def"
#undef TW_ENV
};

struct EnvFlag {
  const char* name;
  const char* fallback;
  const char* sentence;
};

/// The table, in the order of the enum.
std::span<const EnvFlag> env_table();

/// The value of the variable now, or its default. Read at each call: nothing is cached.
std::string env(Env flag);

/// True when the value is neither empty nor "0".
bool env_on(Env flag);

}  // namespace tw
