#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tw/jit/module.h"
#include "tw/runtime/fork_mutex.h"
#include "tw/target/launch_spec.h"

namespace tw {

namespace cuda {
class Function;
}

/// A compiled program under one set of facts.
struct Variant {
  LaunchSpec launch;
  std::shared_ptr<const Module> module = {};  ///< of a CPU, with its entry
  TwEntry entry = nullptr;
  std::string text = {};                                ///< of the emulator, for its reports
  std::shared_ptr<const cuda::Function> function = {};  ///< of a GPU
};

/// The variants of one kernel by their facts. Finding one takes no lock; each is built once, by the
/// first thread that asks, while others that want the same one wait. Entries stay until the end.
class Variants {
 public:
  Variants() = default;
  ~Variants();
  Variants(const Variants&) = delete;
  Variants& operator=(const Variants&) = delete;

  /// The variant of these facts; build() makes it. When build() throws, the next caller tries
  /// again.
  const Variant& get(std::span<const uint64_t> facts, const std::function<Variant()>& build);

 private:
  struct Node {
    std::vector<uint64_t> facts;
    Node* next = nullptr;
    ForkMutex building;
    std::atomic<const Variant*> ready{nullptr};
  };
  Node& node(std::span<const uint64_t> facts);

  std::atomic<Node*> first_{nullptr};
};

}  // namespace tw
