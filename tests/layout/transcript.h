#pragma once

#include <string>

namespace tw::test {

/// What the call `name(argument, argument)` gives, as text: layouts as `4:1`, swizzled ones as
/// `Sw<3,4,3> o 8:1`, tilers as `<3:3,4:1>`, integers. Arguments are parted by a comma and a space;
/// one alone may be a call.
std::string answer(const std::string& call);

/// `page` with the answer, as it is now, below each line "> call" of its code blocks.
std::string answered(const std::string& page);

}  // namespace tw::test
