#pragma once

#include <memory>

#include "tw/measure/contestant.h"

namespace tw::measure {

/// The contestant that is a function which `tilewright eject` wrote, at that address.
std::unique_ptr<Contestant> ejected_contestant(void* function, const Task& task);

}  // namespace tw::measure
