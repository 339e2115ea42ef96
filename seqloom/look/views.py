"""Every view of a model by its name: its measure, its chart, how to read it, and why it may not fit a model.

The one list that the command line, Python and the report go by. To add a view: a measure, a chart, a line here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .charts.beam import beam_chart
from .charts.classes import calibration_chart, confusion_chart, lengths_chart
from .charts.drawing import draw_model
from .charts.forecasts import fan_chart
from .charts.lines import (
    cost_chart,
    decay_chart,
    gates_chart,
    memory_path_chart,
    query_key_value_chart,
    scalar_chart,
    shrinkage_chart,
    spectrum_chart,
    states_chart,
)
from .charts.maps import (
    attention_chart,
    field_chart,
    flow_chart,
    flow_history_chart,
    heads_chart,
    position_chart,
    units_chart,
)
from .charts.picture import picture_chart
from .charts.tokens import (
    attribution_chart,
    faithfulness_chart,
    map_chart,
    neighbors_chart,
    next_chart,
    order_chart,
    orthogonality_chart,
    probe_chart,
)
from .charts.training import curves_chart, schedule_chart, training_flow_chart, training_spectra_chart, updates_chart
from .conditions import (
    HEADS,
    RECURRENT,
    RECURRENT_MATRIX,
    embed_symbols,
    find,
    find_details,
    forecast_series,
    have_examples,
    have_forget_gate,
    have_gates,
    have_order,
    have_recipe,
    have_records,
    have_scores,
    have_snapshots,
    have_watched,
    predict_symbols,
    require,
    use_search,
)
from .measures.attention import compute_attention_maps
from .measures.gates import list_unit_values
from .measures.gradients import compute_gradient_flow, compute_query_key_value
from .measures.jacobians import compute_decays
from .measures.next_tokens import predict_next_tokens
from .measures.norms import measure_shrinkage
from .measures.order import measure_order_sensitivity, measure_swaps
from .measures.positions import compute_position_vectors
from .measures.probes import fit_probes, label_elements
from .measures.receptive_field import compute_receptive_field
from .measures.spectra import compute_spectra
from .measuring import (
    history_of,
    list_by_length,
    measure_attention,
    measure_attributions,
    measure_best_faithfulness,
    measure_costs,
    measure_gradient_history,
    measure_neighbors,
    measure_scalar,
    measure_traces,
    measure_vectors,
)

if TYPE_CHECKING:
    from . import Look

INSIDE, TRAINING, SCORES, ANSWERS = "inside", "training", "scores", "answers"  # sections of a report
CHOSEN = ("forecast", "attention", "gates", "next", "attribution")  # what is drawn if nobody asks for a view


@dataclass(frozen=True)
class View:
    measure: "Callable[..., Any]"  # of a Look, and what may be asked about
    chart: Callable[[Any], Any]
    reading: str  # how to read it, a sentence or two
    missing: "Callable[[Look], str]" = lambda look: ""  # why it does not fit a model; nothing if it does
    section: str = INSIDE  # where it stands in a report
    shown: Callable[[Any], Any] = lambda result: result  # what of the measure is drawn if no part is asked for

    @property
    def of_training(self) -> bool:
        """Whether it shows how training went, rather than the example."""
        return self.section == TRAINING


VIEWS = {
    "forecast": View(
        lambda look: look.forecast_fan and look.forecast_fan(),
        fan_chart,
        "Gray is what was read and what came; the line with a band is the forecast and its quantiles; dashed are "
        "the baselines.",
        forecast_series,
        section=ANSWERS,
    ),
    "confusion": View(
        lambda look: find_details(look, "confusion"),
        confusion_chart,
        "A row for each true class, a column for each predicted one; beside it precision, recall and F1.",
        have_scores("confusion", "it has no final scores of one class per example"),
        section=SCORES,
    ),
    "calibration": View(
        lambda look: find_details(look, "calibration").get("calibration"),
        calibration_chart,
        "On the diagonal, answers given with 80 % confidence are right in 80 % of the cases.",
        have_scores("calibration", "it has no final scores with a confidence for each answer"),
        section=SCORES,
    ),
    "lengths": View(
        list_by_length,
        lengths_chart,
        "Each score on short, middle and long examples: where it falls with the length, long ones are the problem.",
        have_scores("by_length", "it has no final scores of examples of different lengths"),
        section=SCORES,
    ),
    "model": View(
        lambda look: (look.model, look.batch, look.names),
        lambda result: draw_model(*result),
        "Read it from the bottom up: what goes in, each layer with its shape and weights, what comes out.",
    ),
    "attention": View(
        measure_attention,
        lambda result: attention_chart(result) if result.picture is None else picture_chart(result),
        "A row for each element that attends, a column for each it attends to; the brighter, the larger the weight.",
        find("attention", "no part of this model attends"),
    ),
    "heads": View(
        lambda look: compute_attention_maps(look.model, look.batch, look.names),
        heads_chart,
        "Every layer and head: a stripe attends to one place, a diagonal to a distance, spots to content.",
        HEADS,
    ),
    "beam": View(
        lambda look: (look.search and look.search(), look.target_symbols),
        lambda result: beam_chart(*result),
        "A column for each step: the tokens that were kept, those that were pruned, and where an answer was finished. "
        "The slider replays it.",
        use_search,
    ),
    "next": View(
        lambda look: (predict_next_tokens(look.model, look.batch, look.names), look.target_symbols),
        lambda result: next_chart(*result),
        "A column for each position: the most probable symbols, the first on top; the brighter, the more probable.",
        predict_symbols,
    ),
    "attribution": View(
        measure_attributions,
        lambda result: attribution_chart([one for one, _ in result], [trust for _, trust in result]),
        "Bars up raised the probability of the answer, bars down lowered it. Believe a method only if it beats "
        "random orders.",
    ),
    "faithfulness": View(
        measure_best_faithfulness,
        faithfulness_chart,
        "Deleting what an attribution calls important must lower the probability sooner than deleting at random.",
    ),
    "field": View(
        lambda look, side="": compute_receptive_field(look.model, look.batch, look.names, side or look.side),
        field_chart,
        "How much each element read moves each output. An empty cell: that element cannot reach that output.",
    ),
    "order": View(
        lambda look: (
            measure_order_sensitivity(look.model, look.batch),
            measure_swaps(look.model, look.batch, look.names.of(look.side)),
        ),
        lambda result: order_chart(*result),
        "If shuffling costs nothing, the model reads a bag of elements; below, the neighbors whose order matters.",
        have_order,
    ),
    "gates": View(
        measure_traces,
        gates_chart,
        "The mean of each gate at every step, in the band of most units: 0 is closed, 1 is open.",
        require(RECURRENT, have_gates),
    ),
    "memory-path": View(
        measure_traces,
        memory_path_chart,
        "How much of each step is left at the end, if the forget gates alone decide.",
        require(RECURRENT, have_forget_gate),
    ),
    "states": View(
        measure_traces, states_chart, "The values of the units at every step: the mean and most of them.", RECURRENT
    ),
    "units": View(
        lambda look: list_unit_values(look.measure("gates")),
        units_chart,
        "Every unit of the first recurrence over time, in rows: look for those that switch. A part, such as "
        "encoder.1.f, shows another gate, state or level.",
        RECURRENT,
        shown=lambda result: result[:1],
    ),
    "gradients": View(
        lambda look: compute_gradient_flow(look.model, look.batch, look.names),
        flow_chart,
        "The norm of the loss's gradient at every step of every layer: where it is dark, it has vanished.",
    ),
    "gradient-history": View(
        measure_gradient_history,
        flow_history_chart,
        "The same map at each checkpoint that was kept (more with train.keep_checkpoints): where rows grow dark or "
        "bright, gradients vanish or explode.",
        have_snapshots,
        section=TRAINING,
    ),
    "jacobians": View(
        lambda look: compute_decays(look.model, look.batch),
        decay_chart,
        "How much an early state still moves the last one. A straight line down vanishes, one up explodes.",
        RECURRENT,
    ),
    "scalar": View(
        measure_scalar,
        lambda result: scalar_chart(*result),
        "The same for a single unit, whose weight alone decides, beside this model's own spectral radius.",
        RECURRENT_MATRIX,
    ),
    "spectrum": View(
        lambda look: compute_spectra(look.model),
        spectrum_chart,
        "The singular values of every recurrent matrix: above 1 states can grow, below 1 they shrink.",
        RECURRENT_MATRIX,
    ),
    "query-key-value": View(
        lambda look: compute_query_key_value(look.model, look.batch),
        query_key_value_chart,
        "Queries and keys often get far less gradient than values early in training: then attention learns late.",
        HEADS,
    ),
    "norms": View(
        lambda look: measure_shrinkage(look.model, look.batch),
        shrinkage_chart,
        "What each normalization does to a gradient on its way back: below 1 it shrinks.",
        find("norms", "there is no normalization in this model"),
    ),
    "embedding": View(
        measure_vectors,
        lambda vectors: map_chart(vectors.map(), vectors.marked),
        "Symbols that the model treats alike lie together. Zoom in to tell them apart.",
        embed_symbols,
    ),
    "orthogonality": View(
        lambda look: look.measure("embedding").measure_angles(),
        orthogonality_chart,
        "The cosines between the learned vectors, beside those of vectors drawn at random: in many dimensions any two "
        "random directions are nearly at right angles, so a cosine far from 0 has been learned.",
        embed_symbols,
    ),
    "neighbors": View(
        measure_neighbors,
        neighbors_chart,
        "For a symbol of this input: which others have the most similar vector.",
        embed_symbols,
    ),
    "positions": View(
        lambda look: compute_position_vectors(look.model),
        lambda result: position_chart(result[0]),
        "The vector of every position, and how similar two positions are by their distance.",
        find("positions", "this model has no position vectors: it reads in order, or ignores order"),
    ),
    "probe": View(
        lambda look: fit_probes(look.model, look.batches, [label_elements(batch) for batch in look.batches]),
        probe_chart,
        "How well a linear probe of each layer predicts the target; the mark is the most frequent label.",
        require(predict_symbols, have_examples),
    ),
    "curves": View(
        lambda look: history_of(look).curves,
        curves_chart,
        "Training and validation should fall together; where they part, the model overfits.",
        have_records,
        section=TRAINING,
    ),
    "schedule": View(
        lambda look: history_of(look).rates,
        schedule_chart,
        "The learning rate of each step.",
        have_recipe,
        section=TRAINING,
    ),
    "flow": View(
        lambda look: history_of(look).watched,
        training_flow_chart,
        "The gradient norm of each layer over training; a row that stays dark did not learn.",
        have_watched,
        section=TRAINING,
    ),
    "updates": View(
        lambda look: history_of(look).watched,
        updates_chart,
        "How far the optimizer moved each layer in one step, as a share of its weights.",
        have_watched,
        section=TRAINING,
    ),
    "spectrum-history": View(
        lambda look: history_of(look).watched,
        training_spectra_chart,
        "How the singular values of every recurrent matrix changed over training.",
        require(RECURRENT_MATRIX, have_watched),
        section=TRAINING,
    ),
    "cost": View(
        measure_costs,
        cost_chart,
        "Time and memory of this body and of others of the same size; steeper lines grow faster with length.",
        have_recipe,
    ),
}
