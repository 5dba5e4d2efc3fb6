"""Times contestants in turn. A contestant has calls, one for each set of its tensors; a slice runs
them all, some rounds, and gives the time of one call. A block times every contestant twice, in one
order and then in the other, so that what drifts touches all alike."""
import random
import statistics
import time

BLOCKS = 15
SLICE_US = 3000.0  # least time of a slice


class Stopwatch:
    """Slices of the host's time, for contestants that return when they are done."""

    def __init__(self, calls):
        self.calls, self.rounds = calls, 1

    def slice(self):
        begin = time.perf_counter()
        for _ in range(self.rounds):
            for call in self.calls:
                call()
        return (time.perf_counter() - begin) * 1e6

    def us_of_call(self):
        return self.slice() / (self.rounds * len(self.calls))


class Events(Stopwatch):
    """Slices between two events of a stream; calls are replayed from a graph, or started."""

    def __init__(self, torch, stream, calls, graph):
        super().__init__(calls)
        self.torch, self.stream, self.graph, self.wanted = torch, stream, None, graph
        with torch.cuda.stream(stream):
            for call in calls:
                call()
        stream.synchronize()

    def capture(self):
        if not self.wanted:
            return
        self.graph = self.torch.cuda.CUDAGraph()
        with self.torch.cuda.graph(self.graph, stream=self.stream,
                                   capture_error_mode="thread_local"):
            for _ in range(self.rounds):
                for call in self.calls:
                    call()

    def slice(self):
        begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        with self.torch.cuda.stream(self.stream):
            begin.record()
            if self.graph is not None:
                self.graph.replay()
            else:
                for _ in range(self.rounds):
                    for call in self.calls:
                        call()
            end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1e3


def ready(watch, slice_us=SLICE_US):
    """Chooses the rounds of a slice, and captures them."""
    watch.us_of_call()
    once = watch.us_of_call() * len(watch.calls)
    watch.rounds = max(1, min(500, round(slice_us / max(once, 0.1))))
    if isinstance(watch, Events):
        watch.capture()
        watch.slice()


def blocks(watches, count=BLOCKS):
    """{name: time of a call in us, for each block}."""
    times = {name: [] for name in watches}
    for _ in range(count):
        seen = {name: 0.0 for name in watches}
        for name in (*watches, *reversed(watches)):
            seen[name] += watches[name].us_of_call() / 2
        for name, us in seen.items():
            times[name].append(us)
    return times


def interval(values, draws=1000):
    """95 % bootstrap interval of the median."""
    source = random.Random(1)
    medians = sorted(statistics.median(source.choices(values, k=len(values)))
                     for _ in range(draws))
    return [medians[draws // 40], medians[-1 - draws // 40]]
