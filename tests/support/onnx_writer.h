#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tw::test {

/// Bytes of a protobuf message, field by field.
class Wire {
 public:
  Wire() = default;
  explicit Wire(std::string bytes) : bytes_(std::move(bytes)) {}
  Wire& number(int field, int64_t v);
  Wire& real(int field, float v);
  Wire& text(int field, std::string_view v);
  Wire& message(int field, const Wire& v) { return text(field, v.bytes()); }
  Wire& numbers(int field, const std::vector<int64_t>& all);  ///< packed
  Wire& reals(int field, const std::vector<float>& all);      ///< packed
  Wire& doubles(int field, const std::vector<double>& all);   ///< packed
  const std::string& bytes() const { return bytes_; }

 private:
  void varint(uint64_t v);
  std::string bytes_;
};

// Messages of ONNX, with the numbers that onnx.proto gives types and fields.
inline constexpr int kFloat = 1, kInt64 = 7, kString = 8;

Wire tensor_proto(const std::string& name, int type, const std::vector<int64_t>& dims);
Wire raw_tensor(const std::string& name, int type, const std::vector<int64_t>& dims,
                std::string_view raw);
Wire float_tensor(const std::string& name, const std::vector<int64_t>& dims,
                  const std::vector<float>& values);
/// Data in another file; offset and length are left out when empty.
Wire external_tensor(const std::string& name, const std::vector<int64_t>& dims,
                     const std::string& location, const std::string& offset = "",
                     const std::string& length = "");

/// Extents are numbers, or names where they do not begin with a digit; "" is neither.
Wire value_proto(const std::string& name, int type, const std::vector<std::string>& dims);
Wire shapeless_proto(const std::string& name, int type);
Wire node_proto(const std::string& op, const std::vector<std::string>& inputs,
                const std::vector<std::string>& outputs, const std::string& name = "",
                const std::string& domain = "");

struct ModelProto {
  std::vector<Wire> nodes, inputs, outputs, initializers;
  std::vector<std::pair<std::string, int64_t>> opsets = {{"", 15}};
  Wire more_of_graph = {}, more = {};
  std::string bytes() const;
};

/// A folder that goes with the test.
class ModelFolder {
 public:
  ModelFolder();
  ~ModelFolder();
  ModelFolder(const ModelFolder&) = delete;
  ModelFolder& operator=(const ModelFolder&) = delete;
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  std::string write(const std::string& name, const std::string& bytes) const;  ///< its path
  std::string write(const ModelProto& m) const { return write("model.onnx", m.bytes()); }

 private:
  std::string folder_;
};

/// y = Relu(x + w) of x: f32[N,3], w: f32[3].
ModelProto small_model();

}  // namespace tw::test
