#pragma once

// The tile language: docs/language.md.
#include "tw/lang/ops.h"
