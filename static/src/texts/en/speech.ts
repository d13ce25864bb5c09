/** Texts of speech: the server, voices and samples. */
import { createCounter } from "../plural.ts";

const count = createCounter("en");

/** English. */
export const speech = {
  voice: {
    title: "Voice",
    intro: "Use your own speech server to read messages aloud.",
    loadFailed: "Couldn’t load voice settings",

    bar: "Reading aloud",
    phases: { preparing: "Waiting for audio", speaking: "Reading aloud", paused: "Paused" },
    pause: "Pause",
    resume: "Resume",
    stop: "Stop",

    server: "Speech server",
    url: "URL",
    urlHint: "Any server with the OpenAI speech API, such as http://localhost:8880/v1.",
    keyHint: "Only if the server requires one.",
    model: "Model",
    modelHint: "Leave empty to use the server’s default.",
    modelOffered: (n: number) => count(n, { one: "model available", other: "models available" }),
    format: "Format",
    formatHint: "MP3 starts playing before it has fully loaded.",
    formats: {
      mp3: "MP3",
      opus: "Opus",
      aac: "AAC",
      flac: "FLAC",
      wav: "WAV",
      pcm: "PCM (no header)",
    },
    saved: "Speech server saved",
    saveFailed: "Couldn’t save the speech server",
    try: "Save and test",
    trying: "Testing",
    sentence: "Good evening. This is how I sound.",
    trial: {
      good: "The speech server works",
      bad: "Test failed",
      firstSound: (ms: string) => `First audio after ${ms} ms`,
      models: (n: number) => count(n, { one: "model", other: "models" }),
      noModels: "It doesn’t list its models",
      voices: {
        upstream: (n: number) => count(n, { one: "voice from the server", other: "voices from the server" }),
        files: (n: number) => count(n, { one: "voice from your library", other: "voices from your library" }),
        catalogue: (n: number) =>
          n === 0
            ? "The server doesn’t list its voices. Enter one by name."
            : `The server doesn’t list its voices. ${n} are known for this model.`,
      },
    },

    sound: "Voice and playback",
    voice: "Voice",
    serverVoice: "Server default",
    sources: { upstream: "Server voices", files: "Your library", catalogue: "Known for this model" },
    other: "Another name",
    otherName: "Voice name",
    otherHint: "The name your speech server uses.",
    hear: (what: string) => `Listen: ${what}`,
    speed: "Speed",
    times: (n: string) => `${n}×`,
    quoted: "Voice for dialogue",
    quotedHint: "For text in quotation marks, unless the character has a voice.",
    sameAsAbove: "Same as above",
    narration: "Voice for narration",
    narrationHint: "For text outside of quotation marks.",
    speakerVoice: "Speaker’s voice",
    auto: "Read replies aloud automatically",
    autoHint: "On the device that requested the reply. Reading starts while the rest is still being written.",

    character: "Voice when read aloud",
    characterHint: "Saved in the card. Voices depend on the speech server; another server may not have this one.",
    noCharacterVoice: "Voice from settings",

    library: {
      title: "Voice library",
      intro:
        "Some servers can speak in the voice of a sample. Five to fifteen seconds of one clear voice work best. Use a voice only with its owner’s permission.",
      loadFailed: "Couldn’t load voice samples",
      record: "Record",
      upload: "Upload",
      fetch: "From a URL",
      addFailed: "Couldn’t add the sample",
      imports: "Downloading",
      empty: "No samples yet",
      emptyText: "Record your voice or upload a recording.",
      hear: (name: string) => `Play ${name}`,
      stopHearing: (name: string) => `Stop ${name}`,
      more: (name: string) => `More actions for ${name}`,
      rename: "Rename",
      remove: "Delete",
      removed: (name: string) => `${name} deleted`,
      name: "Name",
      nameMissing: "Enter a name",

      fetchTitle: "Add a sample from a URL",
      url: "Recording URL",
      urlHint: "An audio file, or a page with video or audio. Your server downloads it.",
      urlBad: "Enter a URL that starts with http:// or https://",
      from: "From",
      to: "To",
      pieceHint: "Minutes and seconds. Leave empty to use the start of the recording.",
      pieceBad: "Enter times like 1:15. The end must be after the start.",
      fetchStart: "Add sample",
      fetched: (name: string) => `${name} added to the library`,
      fetchFailed: "Couldn’t add the sample",

      recordTitle: "Record a sample",
      recordHint:
        "Find a quiet place and read a few sentences in the voice you want to hear. Recording stops after two minutes.",
      recordStart: "Start recording",
      recordStop: "Stop recording",
      recordAgain: "Record again",
      recording: "Recording",
      recorded: "Recorded",
      notRecording: "Not recording yet",
      recordingName: (time: string) => `Recording ${time}`,
      preview: "Recording preview",
      microphoneRefused: "Your browser blocked the microphone. Allow it for this site in your browser settings.",
      microphoneMissing: "No microphone available. Browsers allow one only over HTTPS or on localhost.",
    },
  },
};
