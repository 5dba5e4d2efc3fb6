# The zoo: a plug-in of each file, for tests/check/judge_test.cpp. Those that hold instructions of
# x86 are left out elsewhere.
file(GLOB species CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/check/zoo/*.cpp)
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  list(FILTER species EXCLUDE REGEX "/(patches_clock|flushes_subnormals)\\.cpp$")
endif()
add_custom_target(zoo)
foreach(file IN LISTS species)
  get_filename_component(name ${file} NAME_WE)
  add_library(zoo_${name} MODULE ${file})
  target_include_directories(zoo_${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_compile_options(zoo_${name} PRIVATE -Wall -Wextra -Werror -O2)
  target_link_libraries(zoo_${name} PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
  set_target_properties(zoo_${name} PROPERTIES PREFIX "" OUTPUT_NAME ${name} SUFFIX .so
    UNITY_BUILD OFF LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/zoo)
  add_dependencies(zoo zoo_${name})
endforeach()
add_dependencies(test_cli zoo)
target_compile_definitions(test_cli PRIVATE TW_ZOO="${CMAKE_CURRENT_BINARY_DIR}/zoo")
