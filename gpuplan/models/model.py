"""Facts about AI models: dimensions, parameters, bytes.

Derived from a Hugging Face `config.json` or from explicit dimensions; an architecture that is not
known is refused by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from gpuplan.frozen import record

if TYPE_CHECKING:
    from gpuplan.models.images.networks import Profile, VisionNetwork

Pooling = Literal["embed", "score"]


@record
class LatentAttention:
    """Multi-head latent attention (MLA), DeepSeek-V2."""

    q_lora_rank: int | None
    kv_lora_rank: int
    qk_nope_head_dim: int
    qk_rope_head_dim: int
    v_head_dim: int


@record
class Experts:
    """Mixture of experts: `layers` of the model have one. A token passes `active` of `count` routed
    experts and all `shared` ones; the intermediate sizes are of one expert. With `latent_size`,
    routed experts read and write that width instead of the hidden size (Nemotron 3 Super), behind
    one projection down and one up a layer."""

    count: int
    active: int
    intermediate_size: int
    shared: int
    shared_intermediate_size: int
    layers: int
    latent_size: int | None = None


@record
class AttentionLayers:
    """Layers whose softmax attention is of one kind. `window`: they see only the last tokens, or,
    when `chunked`, the tokens of their own chunk of that length (Llama 4). `cached_per_token` is
    elements in one layer: keys and values of all KV heads, or the compressed row of latent
    attention; 0 where the cache of another layer is read. `tokens_per_entry`: tokens that one
    entry of a compressed cache stands for, beside the `recent` tokens that are kept whole
    (DeepSeek-V4)."""

    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    value_dim: int
    cached_per_token: int
    window: int | None = None
    chunked: bool = False
    tokens_per_entry: int = 1
    recent: int = 0


@record
class LinearAttention:
    """Layers with a state of constant size instead of a cache: gated delta net (Qwen3-Next), Kimi
    delta attention, lightning attention (MiniMax-Text-01), Mamba 1 and 2. A layer reads
    `hidden_size` through `input_width` columns of projections and writes from `inner_width` back.
    Of one sequence and layer, `state_elements` are the recurrence (`value_heads` matrices of
    `key_dim` x `value_dim`, fp32 in most engines), `convolution_elements` the last inputs of the
    short convolution (in the model's precision)."""

    kind: Literal["gated_delta_net", "kimi_delta", "lightning", "mamba", "mamba2"]
    layers: int
    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    input_width: int
    inner_width: int
    state_elements: int
    convolution_elements: int


@record
class SparseAttention:
    """Layers that score all cached tokens with a small indexer and attend to the best `top_k`
    (DeepSeek-V3.2, GLM-5) or to the best blocks that together hold `top_k` tokens (MiniMax-M3).
    `index_layers` of them have an indexer of their own, the others reuse its choice;
    `index_cached_per_token` is elements in one such layer."""

    layers: int
    top_k: int
    block: int
    index_layers: int
    index_heads: int
    index_head_dim: int
    index_cached_per_token: int


@record
class Tower:
    """An encoder beside the language model, with its projector: images or audio become tokens.
    `patches_per_token` patches of `patch_size` pixels squared make one token, of `output_size`
    numbers for the language model. `image_tokens`: of the largest image that its processor
    makes."""

    kind: Literal["vision", "audio"]
    layers: int
    hidden_size: int
    intermediate_size: int
    gated_mlp: bool
    attention_heads: int
    patch_size: int
    patches_per_token: int
    image_tokens: int
    output_size: int
    parameters: int


@record
class Transformer:
    """A language model. `linear_parameters` are those that a quantized checkpoint stores in its low
    precision; embeddings, output head, routers, norms and biases stay bf16. The active counts leave
    out the experts that a token is not routed to. `sliding_layers` attend to the last
    `sliding_window` tokens only. `checkpoint_precision` is of the published weights, `quant_method`
    what made them so, where it is less than 16 bits.

    `attention_heads`, `kv_heads` and `head_dim` are of the layers that see everything, where there
    are some. What is beside plain layers of attention and MLP:
    - `attention`: the softmax layers by kind; `attention_free_layers` are not among them (`linear`
      layers; layers that are an MLP alone): no token leaves a cache there;
    - `mlp_free_layers`: neither dense MLP nor experts (Nemotron-H, where a layer is one block);
      `dense_layers` have the dense MLP of `intermediate_size`;
    - `linear`, `sparse`: see their records; `output_gate`: a gate as wide as the attention's output
      multiplies it (Qwen3-Next: the query projection is twice as wide);
    - `parallel_blocks`: attention and MLP of a layer read the same input (GPT-J);
    - `towers`: their parameters are within `parameters`, and linear there; `rotary_elements`: of
      the tables of positions beside them, which engines hold on every GPU;
    - `kept_parameters`: projections of attention that the quantized checkpoint leaves in 16 bits,
      which are not among the linear parameters; `quantized_group`: weights that share a scale;
      `scaled_in_blocks`: whether these are of several rows and columns; None: nothing says so;
    - `mtp_layers`: modules for multi-token prediction in the checkpoint, not counted anywhere;
    - `residual_streams`: side by side, mixed in every layer (hyper-connections);
    - `role`: encoders have no cache and are read once (`encoder`: BERT, ViT, CLIP;
      `encoder_decoder`: T5, whose `layers` are those of both halves);
    - `pooling`: what one text becomes where no text is written: a vector (`embed`), a relevance
      (`score`); None: a decoder with a head for tokens, or what is known of no such use."""

    identifier: str
    revision: str | None
    architecture: str
    layers: int
    hidden_size: int
    attention_heads: int
    kv_heads: int
    head_dim: int
    intermediate_size: int
    vocabulary: int
    tied_embeddings: bool
    gated_mlp: bool
    context_length: int
    latent: LatentAttention | None
    experts: Experts | None
    sliding_window: int | None
    sliding_layers: int
    parameters: int
    active_parameters: int
    linear_parameters: int
    active_linear_parameters: int
    source: str
    checkpoint_precision: str = "bf16"
    quant_method: str | None = None
    quantized_group: int | None = None
    scaled_in_blocks: bool | None = None
    kept_parameters: int = 0
    attention: tuple[AttentionLayers, ...] = ()
    attention_free_layers: int = 0
    mlp_free_layers: int = 0
    linear: LinearAttention | None = None
    sparse: SparseAttention | None = None
    output_gate: bool = False
    parallel_blocks: bool = False
    towers: tuple[Tower, ...] = ()
    rotary_elements: int = 0
    mtp_layers: int = 0
    residual_streams: int = 1
    role: Literal["decoder", "encoder", "encoder_decoder"] = "decoder"
    pooling: Pooling | None = None

    @property
    def causal(self) -> bool:
        """Whether a token sees only those before it."""
        return self.role == "decoder"

    @property
    def cached_layers(self) -> int:
        """Layers with softmax attention."""
        return self.layers - self.attention_free_layers

    @property
    def full_layers(self) -> int:
        """Layers that see every token."""
        return self.cached_layers - self.sliding_layers

    @property
    def dense_layers(self) -> int:
        """Layers with a dense MLP."""
        mixtures = self.experts.layers if self.experts else 0
        return self.layers - self.mlp_free_layers - mixtures


@record
class DiffusionModule:
    """One resident module of a diffusion pipeline."""

    name: str
    kind: Literal["transformer", "unet", "text_encoder", "vae"]
    parameters: int


@record
class Denoiser:
    """A diffusion transformer: `token_weights` multiply every token of an image or video, whose
    `layers` attend to all of them and to `text_tokens` in vectors of `width`. A token covers
    `pixel_stride`² pixels and `frame_stride` frames (0: images only). `passes` a step: 2 with
    classifier-free guidance."""

    identifier: str
    width: int
    layers: int
    token_weights: float
    text_tokens: int
    pixel_stride: int
    frame_stride: int
    passes: int

    @property
    def network(self) -> str:
        """The same for networks of the same dimensions."""
        return f"{self.layers}x{self.width} {'video' if self.frame_stride else 'image'}"

    def token_pixels(self, frames: int = 1) -> float:
        """Pixels, of all frames, that a token covers; the first frame has a latent of its own."""
        latents = 1 if frames <= 1 else 1 + (frames - 1) // self.frame_stride
        if self.identifier == "step-video":  # 17 frames are 3 latents
            latents = -(-frames * 3 // 17) if frames > 1 else 1
        return self.pixel_stride**2 * frames / latents


@record
class Unet:
    """Operations of a convolutional denoiser for one image of `reference_pixels`: of a pass, those
    of self-attention among them, which grow with the square of the pixels, and of text encoders
    and decoder. `passes` a step: 2 with classifier-free guidance."""

    pass_flop: float
    attention_flop: float
    decode_flop: float
    reference_pixels: int
    passes: int


@record
class Diffusion:
    """A pipeline from text to images or videos. `stored_weight_bytes`: of a weight as it is
    published; None where no source states them."""

    identifier: str
    revision: str | None
    architecture: str
    modules: tuple[DiffusionModule, ...]
    denoiser: Denoiser | Unet
    parameters: int
    stored_weight_bytes: int | None = None
    stored_source: str | None = None
    source: str

    @property
    def makes_videos(self) -> bool:
        return isinstance(self.denoiser, Denoiser) and self.denoiser.frame_stride > 0


@record
class Speech:
    """A model that writes down audio, in windows of `window_seconds`: the encoder reads a window,
    the decoder writes it and attends to all of the encoder's positions (`context_length`)."""

    identifier: str
    revision: str | None
    architecture: str
    encoder: Transformer
    decoder: Transformer
    parameters: int
    window_seconds: int
    source: str
    checkpoint_precision: str = "bf16"


@record
class Vision:
    """A model that reads images, `pixels` wide and high once they are cut to size: the `network` of
    its image tower, and the `parameters` of all that its checkpoint holds."""

    identifier: str
    revision: str | None
    architecture: str
    network: VisionNetwork
    pixels: int
    parameters: int
    source: str
    checkpoint_precision: str = "fp32"

    @property
    def profile(self) -> Profile:
        return self.network.at(self.pixels)

    @property
    def tokens(self) -> int:
        """Of an image: its patches, one where it has none, and the token of the class."""
        patch = self.network.patch
        patches = (self.pixels // patch) ** 2 if patch else 1
        return patches + int(self.network.class_token)

    @property
    def embeds(self) -> bool:
        """Whether it gives vectors that texts are held against."""
        return self.architecture in EMBEDDING

    @property
    def vectors(self) -> int:
        """Numbers of the vector that it gives; 0 of a classifier. As wide as the tower, or less."""
        return 0 if "Classification" in self.architecture else self.network.width


# With a tower for texts beside the one for images.
EMBEDDING = ("CLIPModel", "SiglipModel")
Model = Transformer | Diffusion | Speech | Vision
