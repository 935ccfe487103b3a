"""The cells of the demonstration, as a user would type them."""

from __future__ import annotations

#: (what happens, the cell)
CELLS: tuple[tuple[str, str], ...] = (
    ("Load the extension; `fluid` and `layers` are there from now on.", "%load_ext fluidnb\n%fluid seed 7"),
    (
        "A %%fluid cell builds a part of a program. Variables take the names that you give them.",
        "%%fluid data\nimage = layers.data('image', shape=[64])\n"
        "label = layers.data('label', shape=[1], dtype='int64')",
    ),
    (
        "The classifier: two layers.",
        "%%fluid net\nhidden = layers.fc(image, size=32, act='relu')\n"
        "digit = layers.fc(hidden, size=10, act='softmax')\ndigit",
    ),
    (
        "What to minimise, and how.",
        "%%fluid goal\nloss = layers.mean(layers.cross_entropy(digit, label))\n"
        "accuracy = layers.accuracy(digit, label)\ntest_program = fluid.default_main_program().clone(for_test=True)\n"
        "fluid.optimizer.Adam(learning_rate=0.01).minimize(loss)",
    ),
    ("The whole program: forward, backward, optimizer. Each operator knows its cell and line.", "%fluid show"),
    (
        "Train on 1,438 real handwritten digits.",
        "reader = fluid.batch(fluid.reader.shuffle(fluid.dataset.digits.train(), 1438), 64)\n"
        "%fluid train reader --passes 4 --watch loss accuracy",
    ),
    (
        "Change a cell and run it again: the later cells follow, parameters that still fit keep what they learned.",
        "%%fluid net\nhidden = layers.fc(image, size=64, act='relu')\n"
        "digit = layers.fc(hidden, size=10, act='softmax')\ndigit",
    ),
    ("Train the larger one.", "%fluid train reader --passes 12 --watch loss accuracy"),
    (
        "Evaluate on 359 digits that it has never seen.",
        "import numpy as np\npixels, digits = map(np.array, zip(*fluid.dataset.digits.test()()))\n"
        "exe = fluid.Executor(fluid.CPUPlace())\n"
        "test_accuracy, = exe.run(test_program, feed={'image': pixels, 'label': digits.reshape(-1, 1)},\n"
        "                         fetch_list=[accuracy])\n"
        "print(f'test accuracy {test_accuracy.item():.3f}')",
    ),
    (
        "Another program beside the first: linear regression on scikit-learn's diabetes data.",
        "%%fluid regression --program diabetes\nx = layers.data('x', shape=[10])\ny = layers.data('y', shape=[1])\n"
        "line = layers.fc(x, size=1)\nsquared = layers.mean(layers.square_error_cost(line, y))\n"
        "fluid.optimizer.SGD(learning_rate=0.02).minimize(squared)",
    ),
    (
        "",
        "%fluid train fluid.batch(fluid.dataset.diabetes.train(), 32) --program diabetes --passes 60 --watch squared",
    ),
    ("What the cells built, and the values that the scope holds.", "%fluid cells\n%fluid scope"),
)
