#pragma once

#include <string>
#include <vector>

namespace tw {

/// A hint for a name that is not among `known`: "did you mean 'x'?" when one is close by edit
/// distance, else the list.
std::string did_you_mean(const std::string& name, const std::vector<std::string>& known);

}  // namespace tw
