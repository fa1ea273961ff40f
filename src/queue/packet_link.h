// SPDX-License-Identifier: BSD-2-Clause
// How does a connected queue pair reach its peer by packets?
#pragma once

#include <memory>
#include <optional>

#include "base/stats.h"
#include "link.h"
#include "reply_forecast.h"
#include "roce/packet_output.h"
#include "transport/requester.h"
#include "transport/responder.h"
#include "transport/unreliable_receiver.h"
#include "transport/unreliable_sender.h"

namespace weft::queue {

class QpTarget;

// The surroundings of a link by packets; all outlive it.
struct LinkParts {
  roce::PacketOutput& output;
  work::WorkSink& sink;
  work::LocalMemory& memory;
  QpTarget& target;
  Stats& stats;
  std::size_t receive_buffer = 0;  // bytes of the port's socket: taken for the peer's, too
  bool selective = true;           // between Weft's hosts: selective repeat
};

// The reliable and the unreliable connection, and either end of an extended reliable one.
class PacketLink final : public Link {
 public:
  PacketLink(QpType type, const QpAttributes& attributes, std::shared_ptr<const roce::Path> path,
             const LinkParts& parts);

  void begin_sending(const QpAttributes& attributes) override;
  void post(const QpSendRequest& request) override;
  void flush() override;
  void take_request(const roce::PacketArrival& arrival, Time now) override;
  void take_response(const roce::PacketArrival& arrival, Time now) override;
  void take_cnp(Time now) override;
  void emit_requests(bool polls, Time now) override;
  void emit_answers(bool replies, Time now) override;
  bool expects_post() const override { return forecast_.expects_post(); }
  Time send_due() const override;
  Time receive_due() const override;
  void tick(Time now) override;
  bool receive_failed() const override;
  void change(const QpAttributes& attributes) override;
  bool is_peer(const os::SocketAddress& from) const override { return from == path_->to; }

 private:
  bool gathers(Time now);

  const QpType type_;
  const std::shared_ptr<const roce::Path> path_;
  const LinkParts parts_;
  transport::Settings settings_;
  // Reliable: the first two; an end of an extended connection has one of them. Unreliable: the
  // others.
  std::optional<transport::Responder> responder_;
  std::optional<transport::Requester> requester_;
  std::optional<transport::UnreliableReceiver> receiver_;
  std::optional<transport::UnreliableSender> sender_;
  // Requests that were posted and not sent; until when they wait for others, Time::max() if they do
  // not.
  unsigned posted_ = 0;
  std::size_t posted_bytes_ = 0;
  Time gathers_until_ = Time::max();
  ReplyForecast forecast_;
};

}  // namespace weft::queue
