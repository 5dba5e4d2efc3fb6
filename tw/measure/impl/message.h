#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "tw/measure/compare.h"

namespace tw::measure {

/// Descriptors that a worker is started with: a socket and two shared memories.
inline constexpr int kWorkerSocket = 3, kWorkerInputs = 4, kWorkerOutputs = 5;
/// With the number of what the two say to each other.
inline constexpr const char* kWorkerFlag = "--measure-worker=2";

/// Sends one message (length, then JSON text). False when the other end is gone.
bool send(int socket, const nlohmann::json& message);
/// Whether a message, or the end of the stream, comes within `timeout_s`
/// (negative: waits for ever).
bool can_receive(int socket, double timeout_s);
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

}  // namespace tw::measure
