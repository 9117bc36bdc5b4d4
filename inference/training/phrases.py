"""Short and conversational utterances, made from templates: what people say to each other and to machines.

The dictionary sentences of `data/sentences.txt.gz` are statements of some length; a listener of a voice service hears
"Yes.", "Sure, I can help you with that." and "4 8 1 5" just as often.
"""

from __future__ import annotations

import random
from collections.abc import Callable

# fmt: off
OPENERS = (
    "Yes", "No", "Okay", "OK", "Sure", "Hi", "Hello", "Hey", "Thanks", "Thank you", "Great", "Right", "Well", "Good",
    "Of course", "Certainly", "Absolutely", "Exactly", "Maybe", "Perhaps", "Please", "Sorry", "Excuse me", "Wait",
    "Stop", "Go", "Goodbye", "Bye", "Good morning", "Good evening", "Good afternoon", "Good night", "Welcome",
    "Welcome back", "Never mind", "No problem", "You're welcome", "I see", "I know", "I think so", "I don't know",
    "I'm not sure", "Not yet", "Not really", "Of course not", "That's right", "That's fine", "Sounds good", "Got it",
    "All right", "Alright", "Oh", "Ah", "Wow", "Really", "Perfect", "Excellent", "Congratulations", "Be careful",
    "Come in", "Let's go", "One moment", "Just a second", "Hold on", "Here you are", "Here we go", "See you soon",
    "See you later", "Take care", "Good luck", "Nice to meet you", "How are you", "What", "Why", "Who", "Where", "When",
    "How", "Why not", "Really", "Are you sure", "What happened", "What's that", "Is that so", "Can you hear me", "Now",
    "Today", "Tomorrow", "Done", "Ready", "True", "False", "First", "Second", "Finally", "However", "In fact",
    "For example", "On the other hand", "As you can see", "By the way", "To be honest", "In other words", "After that",
    "At first", "Actually", "Unfortunately", "Luckily", "Meanwhile", "So", "And then", "Besides",
)
ASKED = frozenset("what why who where when how really".split())
HELPS = (
    "help you with that", "look that up for you", "read it to you", "explain that again", "send you the details",
    "book a table for {n}", "set a reminder for {hour}", "call you back at {time}", "find a {place} near you",
    "tell you more about {topic}", "show you the way to the {place}", "translate that for you", "turn the {thing} off",
    "check the weather in {city}", "add {n} {things} to your list", "play some music", "put you through to {name}",
    "change your appointment to {day}", "cancel the order", "start over", "repeat the question", "open the {thing}",
)
TOPICS = (
    "the history of the {place}", "the moon and the planets", "how a {thing} works", "the weather", "your account",
    "the new {thing}", "healthy food", "learning a language", "the ocean", "the human body", "electric cars",
    "computers", "music", "the stars", "gardening", "the city of {city}", "ancient Rome", "the brain", "money",
)
PLACES = (
    "airport", "library", "supermarket", "station", "museum", "pharmacy", "bakery", "office", "hospital", "hotel",
    "bank", "beach", "park", "restaurant", "school", "bridge", "market", "church", "theater", "post office", "garage",
)
THINGS = (
    "door", "window", "light", "phone", "computer", "printer", "camera", "oven", "heating", "alarm", "radio", "screen",
    "door bell", "engine", "kettle", "fridge", "microphone", "keyboard", "clock", "battery", "lamp", "car", "book",
)
PLURALS = (
    "apples", "eggs", "bottles of water", "batteries", "tickets", "lemons", "stamps", "chairs", "letters", "pictures",
    "questions", "cups of coffee", "loaves of bread", "pages", "boxes", "keys", "photos", "onions", "pairs of shoes",
)
NAMES = (
    "Anna", "James", "Priya", "Omar", "Chloe", "Daniel", "Lucas", "Sofia", "Ethan", "Grace", "Noah", "Oliver", "Hannah",
    "Emily", "Marcus", "Julia", "Kevin", "Laura", "Nora", "Victor", "Alice", "Tom", "Rachel", "Ben", "Maya", "Peter",
    "Sarah", "David", "Mary", "John", "Michael", "Lisa", "Robert", "Emma", "Paul", "Linda", "George", "Karen", "Mark",
    "Mr. Brown", "Mrs. Smith", "Ms. Garcia", "Dr. Patel", "Doctor Lee", "my brother", "my sister", "my mother",
)
CITIES = (
    "London", "Chicago", "Toronto", "Sydney", "Dublin", "Boston", "Seattle", "Denver", "Paris", "Tokyo", "Berlin",
    "Madrid", "Cairo", "Lisbon", "Vienna", "Oslo", "Rome", "New York", "San Francisco", "Amsterdam", "Athens", "Moscow",
)
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday", "today", "tomorrow", "next week")
MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
          "December")
COLOURS = ("red", "blue", "green", "yellow", "black", "white", "brown", "grey", "orange", "purple", "pink")
TALK = (
    "I'm sorry, but I can't {help} right now.", "Sure, I can {help}.", "Would you like me to {help}?",
    "I'd be happy to {help}.", "Let me {help}.", "I will {help} {day}.",
    "Do you want to know more about {topic}?", "Here is what I found about {topic}.", "Tell me about {topic}.",
    "That's a good question about {topic}.", "What do you think about {topic}?", "Let's talk about {topic}.",
    "Where is the nearest {place}?", "How far is it to the {place}?", "When does the {place} open on {day}?",
    "Is there a {place} near here?", "Which way is the {place}?", "How do I get to the {place}?",
    "The {place} is {n} minutes from here.", "The {place} opens at {time} and closes at {time}.",
    "Who left the {thing} in the {place}?", "Why is the {thing} so loud?", "What is wrong with the {thing}?",
    "How many {things} do you need?", "How much does the {thing} cost?", "It costs {money}.", "That will be {money}.",
    "Did {name} call you {day}?", "Has {name} been to {city} before?", "Have you seen {name}?", "Is {name} at home?",
    "My name is {name}, and I live in {city}.", "This is {name} from {city}.", "{name} said that it was fine.",
    "{name} bought {n} {things} for {money}.", "{name} is going to {city} on {date}.", "I met {name} in {city}.",
    "The train to {city} leaves at {time}.", "Your flight to {city} is delayed by {n} minutes.", "It is {time} now.",
    "Your appointment is on {date} at {time}.", "Your code is {digits}.", "The number is {digits}.",
    "It is number {n}.",
    "Please call {digits} and ask for {name}.", "Please press {d}.", "For {topic}, press {d}.", "I have {n} {things}.",
    "The temperature in {city} is {n} degrees.", "We need {n} {things} and {n} {things}.", "It was built in {year}.",
    "He was born in {year}.", "In {year}, the {place} was closed.", "Room {n} is on the left.", "Page {n}, please.",
    "The {colour} {thing} is mine.", "I like the {colour} one.", "Do you prefer {colour} or {colour}?", "{colour}.",
    "Turn left at the {place}, then go straight on.", "Turn the {thing} on, please.", "Is the {thing} still on?",
    "Are you going to the {place} with {name}?", "If you like {topic}, go to the {place}.", "What time is it?",
    "Where are you going?", "What are you doing?", "How can I help you?", "What is your name?", "Where do you live?",
    "How are you today?", "Do you speak English?", "Can I ask you something?",
    "Can you read it to me?", "Could you say that again, please?", "Is everything all right?",
    "Don't worry about the {thing}.", "Please don't touch the {thing}!", "Be careful with the {thing}!", "{name}!",
    "When the {thing} is ready, call {name}.", "First, open the {thing}, then wait for {n} seconds.", "{name}?",
    "I don't think that {name} will come {day}.", "{name} and {name} are waiting at the {place}.", "{n} percent.",
    "About {n} percent of the {things} were {colour}.", "{digits}.", "{n}.", "{time}.", "{date}.", "{money}.", "{day}.",
    "{n} {things}.", "{city}.", "{name} from {city}.", "The {thing}.", "A {colour} {thing}.", "{n}, {n}, {n}.",
    "It's {n} {things}, not {n}.", "That makes {n} in total.", "Chapter {n}.", "Version {d}.{d}.",
    "{d} times {d} is {n}.",
)
# fmt: on


def short_utterance(rng: random.Random) -> str:
    """One to three words such as "Yes.", "Good morning!" or "Why not?"."""
    word = rng.choice(OPENERS)
    if word.split()[0].lower() in ASKED and rng.random() < 0.7:
        return word + "?"
    return word + rng.choices((".", "!", "?", ",", "", "..."), (50, 22, 10, 12, 4, 2))[0]


def spelled(rng: random.Random) -> str:
    """Digits or letters one by one: "4 8 1 5", "4815", "A B C"."""
    if rng.random() < 0.2:
        return rng.choice((" ", "-")).join(rng.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZ", k=rng.randint(2, 5)))
    separator = rng.choices((" ", ", ", "", "-"), (60, 20, 15, 5))[0]
    return separator.join(rng.choices("0123456789", k=rng.randint(2, 4 if separator == "" else 7)))


def number(rng: random.Random) -> str:
    """A number as text, mostly small."""
    return str(rng.choice((rng.randint(0, 20), rng.randint(2, 99), rng.randint(100, 999), rng.randint(1000, 9999))))


def talk(rng: random.Random) -> str:
    """A sentence or question of everyday talk with names, places, numbers and times filled in."""
    text = rng.choice(TALK)
    while "{" in text:
        start = text.index("{")
        end = text.index("}", start)
        text = text[:start] + FILLERS[text[start + 1 : end]](rng) + text[end + 1 :]
    return (text[0].upper() + text[1:]).replace("m..", "m.").replace("m.?", "m.")


def _money(rng: random.Random) -> str:
    exact = (f"${rng.randint(2, 900)}", f"${rng.randint(1, 99)}.{rng.randint(10, 99)}")
    return rng.choice((*exact, *(f"{rng.randint(2, 90)} {unit}" for unit in ("dollars", "euros", "cents"))))


def _time(rng: random.Random) -> str:
    hour, minute = rng.randint(1, 12), rng.choice(("05", "10", "15", "20", "25", "30", "40", "45", "50"))
    exact = (f"{hour}:{minute}", f"{hour}:{minute} p.m.")
    return rng.choice((*exact, f"{hour} o'clock", f"half past {hour}", f"{hour} a.m."))


def _date(rng: random.Random) -> str:
    day, month, year = rng.randint(1, 28), rng.choice(MONTHS), rng.randint(1950, 2035)
    return rng.choice((f"{month} {day}", f"{month} {day}, {year}", f"the first of {month}", f"{day} {month}"))


def _pick(values: tuple[str, ...]) -> Callable[[random.Random], str]:
    return lambda rng: rng.choice(values)


FILLERS: dict[str, Callable[[random.Random], str]] = {
    "help": _pick(HELPS),
    "topic": _pick(TOPICS),
    "place": _pick(PLACES),
    "thing": _pick(THINGS),
    "things": _pick(PLURALS),
    "name": _pick(NAMES),
    "city": _pick(CITIES),
    "day": _pick(DAYS),
    "colour": _pick(COLOURS),
    "date": _date,
    "money": _money,
    "time": _time,
    "hour": _time,
    "year": lambda rng: str(rng.randint(1700, 2035)),
    "digits": spelled,
    "n": number,
    "d": lambda rng: str(rng.randint(0, 9)),
}
"""What a name in braces stands for."""
