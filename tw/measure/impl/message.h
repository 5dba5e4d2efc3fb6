#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "tw/measure/compare.h"

namespace tw::measure {

/// Descriptors that a worker is started with.
inline constexpr int kWorkerSocket = 3, kWorkerExchange = 4;
inline constexpr const char* kWorkerFlag = "--measure-worker";

/// Sends one message (length, then JSON text). False when the other end is gone.
bool send(int socket, const nlohmann::json& message);
/// The next message; nullopt at the end of the stream. Throws DeviceError after `timeout_s` without
/// a whole message (negative: waits for ever).
std::optional<nlohmann::json> receive(int socket, double timeout_s);

/// What a worker answers when measure_ceilings() asks.
nlohmann::json ceilings_here(int threads, int repeats);

nlohmann::json to_json(const TensorSpec& t);
TensorSpec tensor_spec(const nlohmann::json& j);

/// Bytes from the first to the last element of the tensor, rounded up to cache lines.
int64_t span_bytes(const TensorSpec& t);
TensorView view_of(const TensorSpec& t, void* data);

/// Memory that the judge shares with its workers: inputs of every set, then room for the outputs of
/// one set.
class Exchange {
 public:
  Exchange(std::vector<TensorSpec> inputs, std::vector<TensorSpec> outputs, int sets);
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  /// Makes the memory (judge), or maps that of another process (worker).
  void create();
  void map(int descriptor);

  int descriptor() const { return descriptor_; }
  int sets() const { return sets_; }
  const std::vector<TensorSpec>& inputs() const { return inputs_; }
  const std::vector<TensorSpec>& outputs() const { return outputs_; }
  TensorView input(int set, int index) const;
  TensorView output(int index) const;

 private:
  int64_t input_bytes() const;

  std::vector<TensorSpec> inputs_, outputs_;
  int sets_, descriptor_ = -1;
  int64_t bytes_ = 0;
  char* base_ = nullptr;
};

}  // namespace tw::measure
