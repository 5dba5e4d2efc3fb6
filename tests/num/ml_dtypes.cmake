# The codec against PyPI's ml_dtypes. ./runtests makes .venv first, so there the test always runs.
set(python ${CMAKE_SOURCE_DIR}/.venv/bin/python)
if(EXISTS ${python})
  add_executable(num_codec num/tool/codec_tool.cpp)
  target_link_libraries(num_codec PRIVATE tw_num)
  add_test(NAME num_ml_dtypes
    COMMAND ${python} ${CMAKE_CURRENT_SOURCE_DIR}/num/ml_dtypes_test.py $<TARGET_FILE:num_codec>)
endif()
