"""A segmenter in Python: a command is a burst of application data to the gateway, and what the gateway sends next replies.

A stage of a pipeline in Python, Pipeline().replace("command-segmenter", Bursts()), or a program: python3 bursts.py"""
import sizeleak


class Bursts(sizeleak.Stage):
    def __init__(self, silence_ms=40, replies_ms=3000, shortest=50):
        self.silence, self.replies, self.shortest, self.open = silence_ms * 10**6, replies_ms * 10**6, shortest, {}

    def process(self, record):
        if record.content_type != 23 or record.handshake or record.length < self.shortest:
            return
        command = self.open.get(record.flow)
        since = record.start_ns - command.end_ns if command else None
        if record.direction == "from_gateway":
            if command and since <= self.replies:
                command.replies, command.reply_bytes = command.replies + 1, command.reply_bytes + record.length
        elif command and since <= self.silence:
            command.end_ns, command.size, command.records = record.time_ns, command.size + record.length, command.records + 1
            both = command.plaintext and record.plaintext
            command.plaintext = both and [a + b for a, b in zip(command.plaintext, record.plaintext)]
        else:
            yield from self.end(record.flow)
            self.open[record.flow] = sizeleak.Command(time_ns=record.start_ns, end_ns=record.time_ns, flow=record.flow,
                                                      size=record.length, plaintext=record.plaintext)

    def end(self, flow):
        return [self.open.pop(flow)] if flow in self.open else []

    def finish(self):
        return sorted(self.open.values(), key=lambda command: command.time_ns)


if __name__ == "__main__":
    sizeleak.serve(Bursts())
