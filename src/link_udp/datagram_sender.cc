// SPDX-License-Identifier: BSD-2-Clause
// How does a datagram become a packet, and when does that leave?
#include "datagram_sender.h"

#include <cerrno>

#include "link_udp/ud_endpoint.h"
#include "wire/packet.h"

namespace weft::udp {

bool DatagramSender::leaves(bool may_linger, os::Time now) {
  if (now - last_ > kPause) in_burst_ = 0;
  last_ = now;
  return ++in_burst_ <= kAtOnce || !keeps_ || !may_linger;
}

link::Outcome DatagramSender::send(DatagramTarget& target, const link::SendRequest& request) {
  if (target.is_absent()) return link::Outcome::failed(ECONNREFUSED);
  const link::Outcome outcome = send_at(target, request, std::chrono::steady_clock::now());
  if (trains_.errors_seen()) port_.report_errors();
  return outcome;
}

link::Outcome DatagramSender::send_at(DatagramTarget& target, const link::SendRequest& request,
                                      os::Time now) {
  if (request.operation != link::MessageOperation::kDatagram)
    return link::Outcome::failed(EOPNOTSUPP);
  if (request.length > wire::kMaxPathMtu) return link::Outcome::failed(EMSGSIZE);
  const std::span<std::byte> place = trains_.place();
  if (place.empty()) return link::Outcome::again();
  const auto length =
      writer_.write({queue_pair_, target.queue_pair, request.has_data, request.data, queue_key_},
                    request.sges, request.length, place);
  if (!length) return link::Outcome::failed(EFAULT);
  trains_.add(target.path, *length);
  if (leaves(request.may_linger, now)) trains_.flush();
  return link::Outcome::done();
}

void DatagramSender::finish() {
  trains_.flush();
  trains_.drop();
}

void DatagramSender::poll() {
  in_burst_ = 0;
  keeps_ = true;
  trains_.flush();
}

}  // namespace weft::udp
