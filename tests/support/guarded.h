#pragma once

#include "tw/check/guarded.h"

namespace tw::test {
using check::Guarded;
}  // namespace tw::test
