# Server and clients as processes (net/): Boost.Asio carries frames, OpenSSL protects them, Protocol Buffers say what their headers mean.
set(wire ${CMAKE_BINARY_DIR}/wire)
file(MAKE_DIRECTORY ${wire})
add_custom_command(OUTPUT ${wire}/wire.pb.cc ${wire}/wire.pb.h
  COMMAND protobuf::protoc --cpp_out=${wire} --proto_path=${CMAKE_CURRENT_SOURCE_DIR}/net/wire wire.proto
  DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/net/wire/wire.proto VERBATIM)
add_library(wire OBJECT ${wire}/wire.pb.cc)
target_include_directories(wire SYSTEM PUBLIC ${wire})
target_link_libraries(wire PUBLIC protobuf::libprotobuf-lite)

# fedbits_asio_part(NAME): a part whose threads wait for sockets.
function(fedbits_asio_part name)
  fedbits_part(${name})
  target_link_libraries(${name} PUBLIC wire)
  target_include_directories(${name} SYSTEM PUBLIC ${Boost_INCLUDE_DIRS})
  # Everything that includes Asio needs the same definition: it changes what functions of sockets return.
  target_compile_definitions(${name} PUBLIC BOOST_ASIO_NO_DEPRECATED)
  target_compile_options(${name} PRIVATE -O1)  # waits for sockets, and is long to compile
  if(FL_UNITY_LIBRARY)
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 12)
  endif()
  fedbits_coroutines(${name})
  fedbits_watch_threads(${name})
endfunction()

fedbits_asio_part(net)
target_link_libraries(net PUBLIC OpenSSL::SSL OpenSSL::Crypto)
fedbits_asio_part(status)
set(FL_NET_PARTS net status wire)
