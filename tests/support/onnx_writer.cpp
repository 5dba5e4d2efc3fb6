#include "tests/support/onnx_writer.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

namespace tw::test {

void Wire::varint(uint64_t v) {
  for (; v >= 0x80; v >>= 7) bytes_ += static_cast<char>(v | 0x80);
  bytes_ += static_cast<char>(v);
}

Wire& Wire::number(int field, int64_t v) {
  varint(static_cast<uint64_t>(field) << 3);
  varint(static_cast<uint64_t>(v));
  return *this;
}

Wire& Wire::text(int field, std::string_view v) {
  varint(static_cast<uint64_t>(field) << 3 | 2);
  varint(v.size());
  bytes_ += v;
  return *this;
}

Wire& Wire::real(int field, float v) {
  varint(static_cast<uint64_t>(field) << 3 | 5);
  bytes_.append(reinterpret_cast<const char*>(&v), sizeof v);
  return *this;
}

Wire& Wire::numbers(int field, const std::vector<int64_t>& all) {
  Wire list;
  for (int64_t v : all) list.varint(static_cast<uint64_t>(v));
  return text(field, list.bytes());
}

Wire& Wire::reals(int field, const std::vector<float>& all) {
  return text(field, {reinterpret_cast<const char*>(all.data()), all.size() * sizeof(float)});
}

Wire& Wire::doubles(int field, const std::vector<double>& all) {
  return text(field, {reinterpret_cast<const char*>(all.data()), all.size() * sizeof(double)});
}

Wire tensor_proto(const std::string& name, int type, const std::vector<int64_t>& dims) {
  Wire t;
  for (int64_t d : dims) t.number(1, d);
  return t.number(2, type).text(8, name);
}

Wire raw_tensor(const std::string& name, int type, const std::vector<int64_t>& dims,
                std::string_view raw) {
  return tensor_proto(name, type, dims).text(9, raw);
}

Wire float_tensor(const std::string& name, const std::vector<int64_t>& dims,
                  const std::vector<float>& values) {
  return tensor_proto(name, kFloat, dims).reals(4, values);
}

Wire external_tensor(const std::string& name, const std::vector<int64_t>& dims,
                     const std::string& location, const std::string& offset,
                     const std::string& length) {
  Wire t = tensor_proto(name, kFloat, dims);
  const auto entry = [&](const char* key, const std::string& value) {
    if (!value.empty()) t.message(13, Wire().text(1, key).text(2, value));
  };
  entry("location", location);
  entry("offset", offset);
  entry("length", length);
  return t.number(14, 1);
}

Wire value_proto(const std::string& name, int type, const std::vector<std::string>& dims) {
  Wire shape;
  for (const std::string& d : dims) {
    const bool is_number = !d.empty() && (std::isdigit(static_cast<unsigned char>(d[0])) != 0);
    Wire extent;
    if (is_number) extent.number(1, std::stoll(d));
    if (!is_number && !d.empty()) extent.text(2, d);
    shape.message(1, extent);
  }
  const Wire tensor = Wire().number(1, type).message(2, shape);
  return Wire().text(1, name).message(2, Wire().message(1, tensor));
}

Wire shapeless_proto(const std::string& name, int type) {
  return Wire().text(1, name).message(2, Wire().message(1, Wire().number(1, type)));
}

Wire node_proto(const std::string& op, const std::vector<std::string>& inputs,
                const std::vector<std::string>& outputs, const std::string& name,
                const std::string& domain) {
  Wire n;
  for (const std::string& s : inputs) n.text(1, s);
  for (const std::string& s : outputs) n.text(2, s);
  return n.text(3, name).text(4, op).text(7, domain);
}

std::string ModelProto::bytes() const {
  Wire graph;
  for (const Wire& n : nodes) graph.message(1, n);
  graph.text(2, "graph");
  for (const Wire& t : initializers) graph.message(5, t);
  for (const Wire& v : inputs) graph.message(11, v);
  for (const Wire& v : outputs) graph.message(12, v);
  Wire m;
  m.number(1, 8);
  for (const auto& [domain, version] : opsets)
    m.message(8, Wire().text(1, domain).number(2, version));
  const std::string all = graph.bytes() + more_of_graph.bytes();
  return m.text(7, all).bytes() + more.bytes();
}

ModelFolder::ModelFolder() {
  std::string pattern = testing::TempDir() + "tw-onnx-XXXXXX";
  folder_ = mkdtemp(pattern.data());
}

ModelFolder::~ModelFolder() { std::filesystem::remove_all(folder_); }

std::string ModelFolder::write(const std::string& name, const std::string& bytes) const {
  std::ofstream(path(name), std::ios::binary) << bytes;
  return path(name);
}

ModelProto small_model() {
  ModelProto m;
  m.inputs = {value_proto("x", kFloat, {"N", "3"})};
  m.outputs = {value_proto("y", kFloat, {"N", "3"})};
  m.initializers = {float_tensor("w", {3}, {1, -2, 0.5})};
  m.nodes = {node_proto("Add", {"x", "w"}, {"sum"}, "block/add"),
             node_proto("Relu", {"sum"}, {"y"})};
  return m;
}

}  // namespace tw::test
