#pragma once

#include <memory>
#include <optional>

#include "tw/measure/impl/message.h"
#include "tw/measure/impl/shared_memory.h"

namespace tw::measure {

/// The contestant that a message of the judge describes. A plug-in is confined before it is loaded,
/// but for who knows the key.
std::unique_ptr<Contestant> make_contestant(const nlohmann::json& m, const Factory& factory,
                                            uint64_t key);

/// The worker's end of a Callee: holds a contestant and the memory that the judge lays out.
class CalleeWorker {
 public:
  CalleeWorker(const nlohmann::json& m, const Factory& factory);
  nlohmann::json opened() const;
  nlohmann::json prepare(const nlohmann::json& m);
  nlohmann::json call(const nlohmann::json& m);

 private:
  SharedMemory memory_;
  uint64_t key_ = 0;  // to its protection
  std::unique_ptr<Contestant> contestant_;
};

}  // namespace tw::measure
