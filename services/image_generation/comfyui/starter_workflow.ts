/** The built-in workflow: text to image with one checkpoint, using only built-in nodes. */
import type { Workflow } from "./workflow_format.ts";

/** Its id. A file with this name overrides it. */
export const STARTER_ID = "starter";

/** Previews its image instead of saving it, so that images don't fill the server's disk. */
export const STARTER_WORKFLOW: Workflow = {
  "3": {
    class_type: "KSampler",
    inputs: {
      seed: "%seed%",
      steps: "%steps%",
      cfg: "%scale%",
      sampler_name: "%sampler%",
      scheduler: "%scheduler%",
      denoise: "%denoise%",
      model: ["4", 0],
      positive: ["6", 0],
      negative: ["7", 0],
      latent_image: ["5", 0],
    },
    _meta: { title: "Sampler" },
  },
  "4": {
    class_type: "CheckpointLoaderSimple",
    inputs: { ckpt_name: "%model%" },
    _meta: { title: "Checkpoint" },
  },
  "5": {
    class_type: "EmptyLatentImage",
    inputs: { width: "%width%", height: "%height%", batch_size: 1 },
    _meta: { title: "Size" },
  },
  "6": {
    class_type: "CLIPTextEncode",
    inputs: { text: "%prompt%", clip: ["4", 1] },
    _meta: { title: "Prompt" },
  },
  "7": {
    class_type: "CLIPTextEncode",
    inputs: { text: "%negative_prompt%", clip: ["4", 1] },
    _meta: { title: "Negative prompt" },
  },
  "8": {
    class_type: "VAEDecode",
    inputs: { samples: ["3", 0], vae: ["4", 2] },
    _meta: { title: "Decode" },
  },
  "9": {
    class_type: "PreviewImage",
    inputs: { images: ["8", 0] },
    _meta: { title: "Picture" },
  },
};
