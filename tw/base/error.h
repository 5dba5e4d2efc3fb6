#pragma once

#include <fmt/format.h>
#include <stdexcept>
#include <string>
#include <vector>

#include "tw/base/source_loc.h"

namespace tw {

/// What every exception of tilewright is. A message says what, got, wanted, and (in `hint`) the way
/// out; lower case, no period, one line. what() reads "file:line: error: message; hint", so editors
/// can jump to it; the place is the user's, and is left out when unknown.
class Error : public std::runtime_error {
 public:
  Error(SourceLoc at, std::string message, std::string hint);
  SourceLoc at() const { return at_; }
  const std::string& message() const { return message_; }
  const std::string& hint() const { return hint_; }
  /// The exit code of the command when this error ends it.
  virtual int exit_code() const = 0;

 private:
  SourceLoc at_;
  std::string message_, hint_;
};

/// Your program, call or file is wrong.
class UserError : public Error {
 public:
  explicit UserError(std::string message, std::string hint = "") : Error({}, message, hint) {}
  UserError(SourceLoc at, std::string message, std::string hint = "") : Error(at, message, hint) {}
  int exit_code() const override { return 2; }
};

/// The machine lacks something: a compiler, a driver, disk space.
class EnvError : public Error {
 public:
  explicit EnvError(std::string message, std::string hint = "") : Error({}, message, hint) {}
  int exit_code() const override { return 3; }
};

/// A device failed, or refused a launch.
class DeviceError : public Error {
 public:
  explicit DeviceError(std::string message, std::string hint = "") : Error({}, message, hint) {}
  int exit_code() const override { return 4; }
};

/// A bug of tilewright. `reproducer` is text (usually ir) that shows it again.
class InternalError : public Error {
 public:
  explicit InternalError(std::string message, std::string reproducer = "", SourceLoc at = {})
      : Error(at, "internal error: " + message, ""), reproducer_(std::move(reproducer)) {}
  const std::string& reproducer() const { return reproducer_; }
  int exit_code() const override { return 70; }

 private:
  std::string reproducer_;
};

/// A hint for a name that is not among `known`: "did you mean 'x'?" when one is close by edit
/// distance, else the list.
std::string did_you_mean(const std::string& name, const std::vector<std::string>& known);

}  // namespace tw
