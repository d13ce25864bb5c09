/**
 * Runs on the audio thread: cuts the microphone's sound into frames of 20 ms at 16 kHz and measures how loud each is.
 * Plain JavaScript, because the page loads it as a file of its own.
 */

const TARGET_HZ = 16_000;
const FRAME_SAMPLES = TARGET_HZ / 50;

class MicrophoneFrames extends AudioWorkletProcessor {
  #step = sampleRate / TARGET_HZ;
  /** Input samples that belong to the next output sample: their sum, their number, and how many are still missing. */
  #sum = 0;
  #count = 0;
  #left = sampleRate / TARGET_HZ;
  #frame = new Int16Array(FRAME_SAMPLES);
  #at = 0;
  #power = 0;

  process([input]) {
    const samples = input?.[0];
    if (samples === undefined) return true;
    for (const sample of samples) {
      this.#sum += sample;
      this.#count++;
      if (--this.#left > 0) continue;
      this.#left += this.#step;
      this.#add(this.#sum / this.#count);
      this.#sum = 0;
      this.#count = 0;
    }
    return true;
  }

  #add(sample) {
    const value = Math.max(-1, Math.min(1, sample));
    this.#power += value * value;
    this.#frame[this.#at++] = value * 32_767;
    if (this.#at < FRAME_SAMPLES) return;
    const level = Math.sqrt(this.#power / FRAME_SAMPLES);
    this.port.postMessage({ samples: this.#frame, level }, [this.#frame.buffer]);
    this.#frame = new Int16Array(FRAME_SAMPLES);
    this.#at = 0;
    this.#power = 0;
  }
}

registerProcessor("microphone-frames", MicrophoneFrames);
