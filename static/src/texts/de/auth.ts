/** Texts of signing in, pairing, access and the first setup. */
import type { auth as English } from "../en/auth.ts";

/** German. */
export const auth: typeof English = {
  access: {
    signIn: "Bei Parlor anmelden",
    signInText: (host: string) => `Verwenden Sie Ihren Passkey für ${host}.`,
    usePasskey: "Mit Passkey anmelden",
    haveCode: "Ich habe einen Code",
    haveCodeHint: "Um ein neues Gerät hinzuzufügen, holen Sie sich einen Code auf einem angemeldeten Gerät.",
    havePasskey: "Ich habe einen Passkey",

    pair: "Parlor mit einem Passkey schützen",
    pairText: (host: string) =>
      `Wer ${host} erreichen kann, kann Parlor derzeit benutzen. Erstellen Sie einen Passkey, damit eine Anmeldung nötig ist.`,
    pairCode: "Dieses Gerät hinzufügen",
    pairCodeText: (host: string) =>
      `Geben Sie den Code aus dem Terminal des Servers oder von einem angemeldeten Gerät ein und erstellen Sie dann einen Passkey für ${host}.`,
    name: "Gerätename",
    nameHint: "Damit Sie Ihre Passkeys unterscheiden können.",
    code: "Code",
    codeHint: "8 Buchstaben und Ziffern, z. B. 7K3M-QX2P. Jeder Code gilt einmal.",
    codeMissing: "Geben Sie zuerst den Code ein",
    create: "Passkey erstellen",
    later: "Nicht jetzt",
    deviceName: (browser: string, system: string) => `${browser} auf ${system}`,
    device: "Dieses Gerät",

    cancelled: "Die Passkey-Anfrage wurde abgebrochen oder hat zu lange gedauert.",
    known: "Dieses Gerät hat schon einen Passkey. Melden Sie sich damit an.",
    insecure: "Ihr Browser erlaubt unter dieser Adresse keine Passkeys.",

    unsupported: "Passkeys funktionieren unter dieser Adresse nicht",
    unsupportedAddress: "Browser erstellen Passkeys nur für Domainnamen, nicht für IP-Adressen.",
    useLocalhost: "Öffnen Sie Parlor auf diesem Rechner unter",
    unsupportedHttp: "Browser erstellen Passkeys nur über HTTPS oder auf localhost.",
    howTo: "So nutzen Sie Passkeys",
    wayTailnet: "Schalten Sie in den Einstellungen das Tailnet ein. Parlor erhält dann einen Namen mit HTTPS.",
    wayProxy: "Betreiben Sie einen HTTPS-Proxy wie Caddy vor Parlor und tragen Sie ihn in trusted_proxies ein.",
    wayCert: "Geben Sie dem Server ein TLS-Zertifikat: tls_cert und tls_key.",
    token: "Token",
    tokenHint: "Auf einem angemeldeten Gerät unter Einstellungen, Privatsphäre erstellen.",
    tokenWarning: "Über unverschlüsseltes HTTP kann jeder in diesem Netz das Token und Ihre Daten mitlesen.",
    useToken: "Mit Token anmelden",
    tokenWrong: "Ungültiges Token",

    cli: "Zugriff für die Kommandozeile erlauben?",
    cliText: (name: string) => `Die Kommandozeile auf ${name} möchte vollen Zugriff auf diesen Parlor-Server.`,
    cliWarning: "Erlauben Sie das nur, wenn Sie gerade parlor auth login ausgeführt haben.",
    cliAllow: "Erlauben",
    cliDeny: "Ablehnen",
    cliElsewhere: "Code für einen anderen Rechner anzeigen",
    cliCode: "Code für die Kommandozeile",
    cliCodeText: "Fügen Sie ihn innerhalb von zwei Minuten im Terminal ein.",
    cliBroken: "Dieser Link ist unvollständig. Kopieren Sie ihn noch einmal aus dem Terminal.",
    cliSignIn: "Melden Sie sich zuerst an, um die Kommandozeile freizugeben.",
  },

  push: {
    title: "Benachrichtigungen, wenn Parlor geschlossen ist",
    text:
      "Der Hersteller Ihres Browsers stellt sie zu: etwa Google für Chrome, Apple für Safari, Mozilla für Firefox. " +
      "Er erfährt, dass und wann eine Antwort fertig ist oder Sie braucht, aber nicht, was darin steht oder in welchem Chat.",
    impossible:
      "Dieser Browser erlaubt das nur über HTTPS oder auf localhost. Fügen Sie Parlor auf dem iPhone oder iPad " +
      "zuerst zum Home-Bildschirm hinzu.",
    turnOn: "Für dieses Gerät einschalten",
    turnOff: "Für dieses Gerät ausschalten",
    devices: "Geräte mit Benachrichtigungen",
    thisDevice: (label: string) => `${label} (dieses Gerät)`,
    facts: (vendor: string, since: string) => `Über ${vendor} · seit ${since}`,
    remove: "Entfernen",
    removeOf: (label: string) => `${label} entfernen`,
    server: "ntfy oder Gotify",
    serverText:
      "Stattdessen oder zusätzlich kann ein Benachrichtigungsserver Bescheid geben: Er bekommt nur den Satz " +
      "„A reply is ready“ oder „A reply needs you“.",
    kind: "Dienst",
    topicUrl: "Adresse mit Thema",
    serverUrl: "Adresse des Servers",
    token: "Token",
    tokenSaved: "Ein Token ist gespeichert. Lassen Sie das Feld leer, um es zu behalten.",
    save: "Speichern",
    saved: "Gespeichert",
    test: "Test senden",
    sent: "Gesendet",
  },

  privacy: {
    nav: "Zugriff",
    title: "Privatsphäre und Zugriff",
    here: "Dieser Browser",
    bySession: "Mit Passkey angemeldet.",
    byToken: "Mit Token angemeldet.",
    byLoopback: "Nicht angemeldet. Anfragen vom Rechner des Servers brauchen keine Anmeldung.",
    byGrace:
      "Nicht angemeldet. Diese Adresse hat noch keinen Passkey, daher kann jeder, der sie erreicht, Parlor benutzen.",
    byDisabled: "Nicht angemeldet. Die Anmeldung ist ausgeschaltet (require_auth = false).",
    signOut: "Abmelden",
    signIn: "Anmelden",
    loadFailed: "Die Liste konnte nicht geladen werden",

    passkeys: "Passkeys",
    passkeysText: "Anmeldung ohne Passwort auf Geräten, die den Passkey haben.",
    passkeysNone: "Noch keine Passkeys",
    addHere: "Passkey auf diesem Gerät hinzufügen",
    addDevice: "Weiteres Gerät hinzufügen",
    thisSession: "Aktuelle Sitzung",
    facts: (rpId: string, created: string) => `Für ${rpId} · erstellt ${created}`,
    lastUsed: (when: string) => `zuletzt benutzt ${when}`,
    neverUsed: "nie benutzt",
    revoke: "Widerrufen",
    revokeOf: (name: string) => `${name} widerrufen`,
    revokePasskey: (name: string) => `„${name}“ widerrufen?`,
    revokePasskeyText:
      "Er gilt sofort nicht mehr, und seine Geräte werden abgemeldet. Das kann nicht rückgängig gemacht werden.",
    revokeOwn: "Sie sind mit diesem Passkey angemeldet und werden ebenfalls abgemeldet.",
    revoked: "Widerrufen",
    added: "Passkey erstellt",

    invite: "Weiteres Gerät hinzufügen",
    inviteText:
      "Öffnen Sie Parlor auf dem anderen Gerät und wählen Sie „Ich habe einen Code“, oder scannen Sie diesen QR-Code.",
    inviteLocal:
      "Öffnen Sie Parlor auf dem anderen Gerät unter seiner Netzwerkadresse und wählen Sie „Ich habe einen Code“.",
    inviteCode: "Code",
    inviteUntil: (when: string) => `Gilt einmal, bis ${when}.`,
    qr: "QR-Code mit Adresse und Code",

    tokens: "Tokens",
    tokensText:
      "Für Skripte, die Kommandozeile und Geräte ohne Passkeys. Hier erstellte Tokens gewähren vollen Zugriff.",
    tokensNone: "Noch keine Tokens",
    tokensSession: "Um Tokens zu erstellen, melden Sie sich zuerst mit einem Passkey an.",
    label: "Wofür ist es?",
    labelMissing: "Geben Sie zuerst einen Namen ein",
    mint: "Token erstellen",
    minted: (label: string) => `Token „${label}“`,
    mintedText: "Kopieren Sie es jetzt. Es wird nicht noch einmal angezeigt.",
    mintedQr: "Oder scannen Sie es auf dem Gerät, das es verwenden soll.",
    mintedDone: "Fertig",
    scopeOpenai: "nur OpenAI-kompatible API",
    tokenFacts: (created: string) => `Erstellt ${created}`,
    revokeToken: (label: string) => `„${label}“ widerrufen?`,
    revokeTokenText:
      "Was dieses Token verwendet, verliert sofort den Zugriff. Das kann nicht rückgängig gemacht werden.",

    programs: "Aus anderen Programmen verwenden",
    programsText:
      "Programme, die die API von OpenAI sprechen, können Ihre Figuren und Modelle verwenden. Parlor ergänzt Karte, Persona, Lorebooks und Preset.",
    baseUrl: "Basis-URL",
    program: "Programm",
    exampleOf: (program: string) => `Einstellungen für ${program}`,
    programModels: "Modelle: default, character:<ID> für eine Figur oder connection:<ID>/<Modell>.",
    mintForProgram: "Neues Token für diese API",
  },

  welcome: {
    step: (at: number, of: number) => `Schritt ${at} von ${of}`,
    titles: { model: "Modell wählen", name: "Ihr Name", passkey: "Parlor mit einem Passkey schützen" },
    modelText: "Zum Chatten braucht Parlor ein Sprachmodell. Auf diesem Rechner wird nach Servern gesucht.",
    modelThere: (name: string) => `„${name}“ wird verwendet. Sie können das jederzeit in den Einstellungen ändern.`,
    nameHint:
      "So können Figuren und Modelle Sie ansprechen. Der Name bleibt auf diesem Server und wird nur an Ihre Modelle gesendet.",
    passkeyLocal:
      "Auf diesem Rechner brauchen Sie keinen Passkey. Von anderen Geräten aus verlangt Parlor einen, und jede Adresse hat ihren eigenen. Sie können jetzt einen für diese Adresse erstellen.",
    passkeyThere:
      "Diese Adresse hat schon einen Passkey. Weitere Geräte fügen Sie unter Einstellungen, Privatsphäre hinzu.",
    goOn: "Weiter",
    skip: "Überspringen",
    start: "Chat beginnen",
    container:
      "Parlor läuft in einem Container und sucht nur darin. Um auch auf dem Host zu suchen, setzen Sie diese Variable wie in compose.yaml und starten Sie den Container neu.",
    elsewhere: (hosts: string) =>
      `Parlor hat ${hosts} durchsucht. Ein Server dort wird nur gefunden, wenn er Verbindungen von anderen Rechnern annimmt.`,
    listen: "Starten Sie jeden Server so:",
    listenNote: "Andere Rechner in Ihrem Netz können ihn dann ebenfalls erreichen.",
  },
  quickModel: {
    title: "Oder jetzt ein Modell herunterladen",
    text: (memory: string, disk: string) =>
      `Diese passen auf diesen Rechner mit ${memory} Arbeitsspeicher und ${disk} freiem Speicherplatz. Parlor startet das Modell für Sie.`,
    none: (memory: string, disk: string) =>
      `Dieser Rechner hat ${memory} Arbeitsspeicher und ${disk} freien Speicherplatz, zu wenig für die Modelle, die Parlor kennt. Nutzen Sie einen Server auf einem anderen Rechner.`,
    failed: "Es ließen sich keine Modelle für diesen Rechner finden",
    levels: { fast: "Schnell", balanced: "Ausgewogen", best: "Beste Qualität" },
    memory: (size: string) => `braucht ${size} Arbeitsspeicher`,
    speed: (words: string) => `etwa ${words} Wörter pro Sekunde`,
    starting: "Das Modell startet",
    start: "Starten",
    download: "Herunterladen",
    gone: (name: string) => `${name} gibt es auf dem Hub nicht mehr`,
    install:
      "Um Modelle auszuführen, braucht Parlor llama-server. Installiere es auf dem Rechner, auf dem Parlor läuft:",
    check: "Erneut prüfen",
    which: "Welchen Server benutzen Sie?",
  },
};
