// SPDX-License-Identifier: BSD-2-Clause
// What do the tests of captures share? Files that vanish, and what is in them as libpcap reads it.
#pragma once

#include <gtest/gtest.h>
#include <pcap/pcap.h>
#include <stdlib.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "wire/endian.h"
#include "wire/icrc.h"
#include "wire/packet.h"

namespace weft::capture::testing {

using Bytes = std::vector<std::byte>;

// A directory that vanishes with its test.
class Directory {
 public:
  Directory() {
    char name[] = "/tmp/weft-test-XXXXXX";
    if (::mkdtemp(name) != nullptr) path_ = name;
  }
  ~Directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// One packet of a capture. `packet.payload` lies in `datagram`.
struct Seen {
  wire::Route route;
  Bytes datagram;
  wire::Packet packet;
  bool sound = false;  // its ICRC is right, and it is well formed
  wire::Operation operation() const { return wire::operation_of(packet.opcode); }
  wire::Transport transport() const { return wire::transport_of(packet.opcode); }
};

// Takes an IP packet apart.
inline Seen seen(const std::byte* ip, std::size_t length) {
  Seen made;
  made.route.v6 = wire::load<std::uint8_t>(ip) >> 4 == 6;
  const std::size_t header = made.route.v6 ? 40 : 20;
  const std::size_t address = made.route.v6 ? 16 : 4;
  std::memcpy(made.route.source.data(), ip + header - 2 * address, address);
  std::memcpy(made.route.destination.data(), ip + header - address, address);
  made.route.source_port = wire::load<std::uint16_t>(ip + header);
  made.route.destination_port = wire::load<std::uint16_t>(ip + header + 2);
  made.datagram.assign(ip + header + 8, ip + length);
  wire::Ipv4Words words;
  if (!made.route.v6) {
    words = {wire::load<std::uint16_t>(ip + 4), wire::load<std::uint16_t>(ip + 6)};
  }
  const auto found = wire::check_icrc(made.route, made.datagram, words);
  made.sound =
      found && *found == words && wire::parse(made.datagram, made.packet) == wire::Malformed::kNone;
  return made;
}

// What libpcap finds in a file, which must be valid to its end.
inline std::vector<Seen> packets_in(const std::string& path) {
  std::vector<Seen> found;
  char error[PCAP_ERRBUF_SIZE] = "";
  const std::unique_ptr<pcap_t, decltype(&pcap_close)> file(pcap_open_offline(path.c_str(), error),
                                                            &pcap_close);
  if (file == nullptr) {
    ADD_FAILURE() << path << ": " << error;
    return found;
  }
  pcap_pkthdr* header = nullptr;
  const u_char* bytes = nullptr;
  int state = 0;
  while ((state = pcap_next_ex(file.get(), &header, &bytes)) == 1) {
    found.push_back(seen(reinterpret_cast<const std::byte*>(bytes), header->caplen));
  }
  if (state != PCAP_ERROR_BREAK) ADD_FAILURE() << path << ": " << pcap_geterr(file.get());
  return found;
}

}  // namespace weft::capture::testing
