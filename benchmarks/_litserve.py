"""LitServe with a run of ours, for `serving.py`: python benchmarks/_litserve.py RUN PORT SECONDS_TO_WAIT."""

import sys
from typing import Any

import litserve


class Classifier(litserve.LitAPI):
    """One label for each text of a batch."""

    folder = ""

    def setup(self, device: str) -> None:
        import torch

        from seqloom import load

        torch.set_num_threads(1)
        self.run = load(self.folder)

    def decode_request(self, request: dict[str, Any]) -> str:
        return str(request["inputs"][0])

    def predict(self, texts: list[str]) -> list[str]:
        return [best.output for best, *_ in self.run.predict_many(texts)]

    def encode_response(self, label: str) -> dict[str, str]:
        return {"label": label}


if __name__ == "__main__":
    api = Classifier(max_batch_size=64, batch_timeout=float(sys.argv[3]))
    api.folder = sys.argv[1]
    server = litserve.LitServer(api, accelerator="cpu", timeout=60)
    server.run(port=int(sys.argv[2]), generate_client_file=False, log_level="warning")
