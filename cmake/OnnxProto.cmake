# The encoding of ONNX files: onnx.proto, as the Python package that requirements.txt pins ships it,
# becomes code for protobuf's lite runtime, which is linked in. `onnx_proto` is all there is of it.
function(tw_add_onnx_proto)
  file(GLOB proto ${CMAKE_SOURCE_DIR}/.venv/lib/python3*/site-packages/onnx/onnx.proto)
  if(NOT proto)
    message(FATAL_ERROR "onnx.proto is missing: run ./quickstart or ./runtests once, which make .venv "
      "with the packages of requirements.txt")
  endif()
  list(GET proto 0 proto)
  find_program(TW_PROTOC protoc)
  find_library(TW_PROTOBUF_LITE libprotobuf-lite.a)
  find_library(TW_PROTOBUF_LITE_SHARED libprotobuf-lite.so)
  find_path(TW_PROTOBUF_INCLUDE google/protobuf/message_lite.h)
  if(NOT TW_PROTOC OR NOT TW_PROTOBUF_LITE OR NOT TW_PROTOBUF_LITE_SHARED OR NOT TW_PROTOBUF_INCLUDE)
    message(FATAL_ERROR "protobuf is missing: install protobuf-compiler and libprotobuf-dev")
  endif()

  get_filename_component(folder ${proto} DIRECTORY)
  set(out ${CMAKE_BINARY_DIR}/onnx_proto)
  file(MAKE_DIRECTORY ${out})
  add_custom_command(OUTPUT ${out}/onnx.pb.cc ${out}/onnx.pb.h DEPENDS ${proto}
    COMMAND ${TW_PROTOC} -I${folder} --cpp_out=lite:${out} ${proto})
  add_library(onnx_proto STATIC ${out}/onnx.pb.cc)
  target_compile_options(onnx_proto PRIVATE -w)
  target_include_directories(onnx_proto SYSTEM PUBLIC ${out} ${TW_PROTOBUF_INCLUDE})
  # Debian's archive has thread-local variables that only a program can hold.
  set(shared $<STREQUAL:$<TARGET_PROPERTY:TYPE>,SHARED_LIBRARY>)
  target_link_libraries(onnx_proto PUBLIC Threads::Threads
    $<IF:${shared},${TW_PROTOBUF_LITE_SHARED},${TW_PROTOBUF_LITE}>)
  target_link_options(onnx_proto INTERFACE LINKER:--exclude-libs,libprotobuf-lite.a)
  # Its header is heavy: the one file that includes it is compiled apart from the others.
  set_source_files_properties(${CMAKE_SOURCE_DIR}/tw/graph/onnx/model.cpp PROPERTIES
    SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
