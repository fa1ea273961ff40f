// SPDX-License-Identifier: BSD-2-Clause
// What does a datagram endpoint receive at an address, and from which sources?
//
// usage: weft_datagram_listener ADDRESS PEER
//
// Says `at PORT`, and then a line for each datagram: how many bytes it has, the remote CQ data (0
// without), `peer` if it came from PEER at port 4791 or else another word, and its bytes as text.
// It sleeps until something comes, and goes on until it is ended, or its standard input.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "open_endpoint.h"

namespace {

constexpr in_port_t kForeignPort = 4791;
constexpr int kPatienceMs = 200;

using weft::hosts::check;
using weft::hosts::fail;

fi_info* info_for(const char* address) {
  fi_info* hints = fi_allocinfo();
  hints->ep_attr->type = FI_EP_DGRAM;
  hints->caps = FI_MSG | FI_SOURCE;
  hints->fabric_attr->prov_name = ::strdup("weft");
  fi_info* info = nullptr;
  check("fi_getinfo", fi_getinfo(FI_VERSION(1, 17), address, "0", FI_SOURCE, hints, &info));
  fi_freeinfo(hints);
  return info;
}

in_port_t port_of(fid_ep* endpoint) {
  sockaddr_in6 name{};
  std::size_t length = sizeof name;
  check("fi_getname", fi_getname(&endpoint->fid, &name, &length));
  return ntohs(name.sin6_port);  // where an IPv4 address has it, too
}

fi_addr_t insert(fid_av* addresses, const char* host) {
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  v4.sin_family = AF_INET;
  v6.sin6_family = AF_INET6;
  v4.sin_port = v6.sin6_port = htons(kForeignPort);
  const bool is_v4 = ::inet_pton(AF_INET, host, &v4.sin_addr) == 1;
  if (!is_v4) ::inet_pton(AF_INET6, host, &v6.sin6_addr);
  fi_addr_t number = FI_ADDR_NOTAVAIL;
  const void* address = is_v4 ? static_cast<const void*>(&v4) : static_cast<const void*>(&v6);
  if (fi_av_insert(addresses, address, 1, &number, 0, nullptr) != 1)
    fail("fi_av_insert", -FI_EINVAL);
  return number;
}

// True when the process that started this has closed our standard input, or ended.
bool is_over() {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  return ::poll(&input, 1, 0) > 0;
}

}  // namespace

int main(int count, char** words) {
  if (count != 3) return 2;
  std::array<char, 4097> bytes;
  const weft::hosts::OpenEndpoint open(info_for(words[1]), FI_CQ_FORMAT_DATA, FI_WAIT_UNSPEC);
  fid_cq* const completions = open.completions;
  fid_ep* const endpoint = open.endpoint;
  const fi_addr_t peer = insert(open.addresses, words[2]);
  std::printf("at %u\n", unsigned{port_of(endpoint)});
  std::fflush(stdout);
  check("fi_recv",
        fi_recv(endpoint, bytes.data(), bytes.size() - 1, nullptr, FI_ADDR_UNSPEC, nullptr));
  while (!is_over()) {
    fi_cq_data_entry entry{};
    fi_addr_t source = FI_ADDR_NOTAVAIL;
    const ssize_t got = fi_cq_sreadfrom(completions, &entry, 1, &source, nullptr, kPatienceMs);
    if (got == -FI_EAGAIN) continue;
    check("fi_cq_sreadfrom", got);
    bytes.at(entry.len) = '\0';
    const unsigned long long data = (entry.flags & FI_REMOTE_CQ_DATA) != 0 ? entry.data : 0;
    std::printf("%zu %llu %s %s\n", entry.len, data, source == peer ? "peer" : "another",
                bytes.data());
    std::fflush(stdout);
    check("fi_recv",
          fi_recv(endpoint, bytes.data(), bytes.size() - 1, nullptr, FI_ADDR_UNSPEC, nullptr));
  }
  return 0;
}
