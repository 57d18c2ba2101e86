"""What mypy has to accept, and to refuse where a comment says so."""
import numpy as np

import fedbits

gradient = np.ones(8, np.float32)
compressor: fedbits.Compressor = fedbits.TopK(ratio=0.25, ties="all")
message: fedbits.Message = compressor.compress(gradient, client=3, round=7)
bits: int = message.bits
delta: float | None = message.contract.delta
feedback: fedbits.Feedback = fedbits.EF21(fedbits.QSGD(scaled=True), num_clients=2, P=8, momentum=0.5)
estimate: np.ndarray = feedback.receive() if feedback.send(0, gradient).nbytes else np.zeros(8)
ratio: float = fedbits.TopK(ratio=0.25).ratio
both = fedbits.Induced(biased=fedbits.TopK(k=4), unbiased=fedbits.Natural())

fedbits.TopK(ratoi=0.25)  # refused: call-arg
fedbits.TopK(ties="first")  # refused: arg-type
fedbits.EF21(fedbits.TopK(), num_clients="two", P=8)  # refused: arg-type
fedbits.EF21(fedbits.TopK(), P=8)  # refused: call-arg
fedbits.TopK().ratio = 0.5  # refused: misc
fedbits.TopK().ratoi  # refused: attr-defined
fedbits.TopQ()  # refused: attr-defined
